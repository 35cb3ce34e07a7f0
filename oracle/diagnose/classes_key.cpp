// Mistakes in which keys are absorbed: TAIL, REMAINDER, BLOCK-SKIP, BLOCK-TWICE, RING-STALE within
// one device (a tile of V beside another tile's K).
#include <set>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

/// One tile lost or absorbed twice; the first one with or without the sink.
void add_tiles(const Subject& subject, Families& families) {
  const bool sinks = static_cast<bool>(subject.problem().sinks);
  for (auto& [size, family] : tiled_families(subject.problem().keys)) {
    const std::int64_t tiles = family.setting.parts;
    family.setting.sink_apart = sinks;
    for (std::int64_t t = tiles - 1; t >= 0; --t) {
      const bool tail = t == tiles - 1;
      const std::string name = "tile " + std::to_string(t) + tiles_of(size);
      add(family, tail ? "TAIL" : "BLOCK-SKIP", name + " is never absorbed", absorbed({t}, 0),
          tail ? "BLOCK-SKIP" : "");
      add(family, "BLOCK-TWICE", name + " is absorbed twice", absorbed({t}, 2));
    }
    if (sinks) {
      const std::string first = "tile 0" + tiles_of(size) + " and the sink are";
      add(family, "BLOCK-SKIP", first + " never absorbed", absorbed({0, tiles}, 0), "SINK");
      add(family, "BLOCK-TWICE", first + " absorbed twice", absorbed({0, tiles}, 2), "SINK");
    }
    families.push_back(std::move(family));
  }
}

/// Keys that pad the last tile are counted, with score 0 and value 0.
void add_padding(const Subject& subject, Families& families) {
  const std::int64_t keys = subject.problem().keys;
  std::set<std::int64_t> seen;
  for (const std::int64_t size : {16, 32, 64, 128, 8, 256, 4}) {
    const std::int64_t padding = (keys + size - 1) / size * size - keys;
    if (padding == 0 || !seen.insert(padding).second) continue;
    add(
        families, "TAIL", std::to_string(padding) + " keys of padding are counted",
        [keys, padding](HeadChange& c) {
          for (std::int64_t n = 0; n < padding; ++n) {
            c.keys.push_back({kZeroKey, kZeroKey, keys + n});
          }
          c.visible = [keys, before = c.visible](std::int64_t i, std::int64_t j) {
            return j >= keys || before(i, j);
          };
          if (c.bias) {
            c.bias = [keys, before = c.bias](std::int64_t i, std::int64_t j) {
              return j >= keys ? 0.0 : before(i, j);
            };
          }
          c.position_k = [keys, before = c.position_k](std::int64_t j) {
            return j >= keys ? j : before(j);
          };
        },
        "PAD-LEAK");
  }
}

/// What does not divide by the number of ranks is dropped, rows and keys.
void add_remainders(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  std::set<std::int64_t> seen;
  for (const std::int64_t divisor : {subject.ranks, 2 * subject.ranks}) {
    if (subject.ranks < 2 || p.keys % divisor == 0) continue;
    const std::int64_t kept = p.keys / divisor * divisor, rows = p.queries / divisor * divisor;
    if (kept == 0 || !seen.insert(kept).second) continue;
    for (const bool keys_too : {true, false}) {
      Family family;
      family.setting.change = [kept, keys_too](HeadChange& c) {
        if (keys_too) c.keys.resize(static_cast<std::size_t>(kept));
      };
      add(
          family, "TAIL",
          std::string(keys_too ? "rows and keys" : "rows") + " from " + std::to_string(rows) +
              " on are dropped",
          [rows](const RowMaterial& row, ExpectedRow& expected) {
            if (row.i < rows) return;
            expected.set_out(Expected::of_kind(Expected::Kind::anything));
            expected.lse = {{"", Expected::of_kind(Expected::Kind::anything)}};
          },
          "REMAINDER");
      family.mutants.back().open = true;
      families.push_back(std::move(family));
    }
    add(
        families, "TAIL", "keys from " + std::to_string(kept) + " on are dropped",
        [kept](HeadChange& c) { c.keys.resize(static_cast<std::size_t>(kept)); }, "REMAINDER");
  }
}

/// Neighbouring tiles that overlap, or leave a gap.
void add_overlaps(const Subject& subject, Families& families) {
  const std::int64_t keys = subject.problem().keys;
  for (const std::int64_t size : tile_sizes(keys)) {
    for (std::int64_t many = 1; many <= 4 && 2 * many < size; ++many) {
      for (const int kind : {0, 1, 2}) {  // twice at the end, twice at the start, lost at the end
        const auto at_edge = [=](std::int64_t j) {
          if (kind == 1) return j % size < many && j >= size;
          return j % size >= size - many && j / size < (keys - 1) / size;
        };
        const std::string edge = "the " + std::to_string(many) + " keys at the " +
                                 (kind == 1 ? "start" : "end") + " of every tile";
        add(families, kind == 2 ? "BLOCK-SKIP" : "BLOCK-TWICE",
            edge + (kind == 2 ? " are lost" : " are absorbed twice") + tiles_of(size),
            [at_edge, kind](HeadChange& c) {
              std::vector<KeySource> keys_left;
              for (const KeySource& key : c.keys) {
                if (!(kind == 2 && at_edge(key.at))) keys_left.push_back(key);
              }
              if (kind != 2) {
                for (const KeySource& key : c.keys) {
                  if (at_edge(key.at)) keys_left.push_back(key);
                }
              }
              c.keys = keys_left;
            });
      }
    }
  }
}

/// K of one tile beside V of another.
void add_other_tiles(const Subject& subject, Families& families) {
  const std::int64_t keys = subject.problem().keys;
  const char* names[] = {"", "K", "V", "K and V"};
  for (const std::int64_t size : tile_sizes(keys)) {
    for (const std::int64_t by : {size, -size}) {
      for (int which = 1; which <= 3; ++which) {
        for (const bool around : {true, false}) {
          if (which == 3 && around) continue;  // a rotation of both is the truth without a mask
          const std::string of = by > 0 ? " of the next tile" : " of the previous tile";
          add(
              families, "RING-STALE",
              names[which] + of + (around ? ", around the end" : ", as far as there is one") +
                  tiles_of(size),
              [=](HeadChange& c) {
                for (KeySource& key : c.keys) {
                  std::int64_t from = key.at + by;
                  if (around) from = (from + keys) % keys;
                  if (from < 0 || from >= keys) from = key.at;
                  if ((which & 1) != 0) key.k = from;
                  if ((which & 2) != 0) key.v = from;
                }
              },
              "BLOCK-TWICE");
        }
      }
    }
  }
}

}  // namespace

void add_key_classes(const Subject& subject, Families& families) {
  add_padding(subject, families);
  add_remainders(subject, families);
  add_tiles(subject, families);
  add_other_tiles(subject, families);
  add_overlaps(subject, families);
}

}  // namespace ringproof::oracle
