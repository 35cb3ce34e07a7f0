// Mistakes in what is added to a score: BIAS-OFFSET, for a dense bias and for ALiBi.
#include <cmath>

#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// Bias and ALiBi, read from the wrong place or added wrongly.
void add_biases(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (!p.bias) return;
  const char* id = "BIAS-OFFSET";
  using Read = std::function<double(const HeadChange&, std::int64_t, std::int64_t)>;
  const auto reading = [&families, id, &p](const char* words, Read read) {
    add(families, id, words, [&p, read](HeadChange& c) {
      c.bias = [&p, read, self = HeadChange(p, c.b, c.h, c.rank)](std::int64_t i, std::int64_t j) {
        return read(self, i, j);
      };
    });
  };
  const auto at = [&p](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto inside = [](std::int64_t n, std::int64_t size) {
      return ((n % size) + size) % size;
    };
    return p.bias.at(inside(b, p.batches), inside(h, p.heads), inside(i, p.queries),
                     inside(j, p.keys));
  };
  add(families, id, "the bias is missing", [](HeadChange& c) { c.bias = nullptr; });
  reading("the sign of the bias", [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
    return -at(c.b, c.h, i, j);
  });
  reading("the bias is added twice", [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
    return 2 * at(c.b, c.h, i, j);
  });
  reading("the bias is scaled with the score",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
            return c.scale_value() * at(c.b, c.h, i, j);
          });
  reading("the bias is divided by the scale",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
            return at(c.b, c.h, i, j) / c.scale_value();
          });
  reading("the bias is not in the base of the exponential",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
            return kLn2 * at(c.b, c.h, i, j);
          });
  reading("the bias is transposed",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) { return at(c.b, c.h, j, i); });
  reading("the bias of head 0 for all heads",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) { return at(c.b, 0, i, j); });
  reading("the bias of batch 0 for all",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) { return at(0, c.h, i, j); });
  reading("the bias of query 0 for all",
          [at](const HeadChange& c, std::int64_t, std::int64_t j) { return at(c.b, c.h, 0, j); });
  reading("the bias of the KV head's number",
          [at](const HeadChange& c, std::int64_t i, std::int64_t j) {
            return at(c.b, c.problem->kv_head(c.h), i, j);
          });
  for (const std::int64_t by : {1, -1}) {
    reading(by > 0 ? "the bias of the next head" : "the bias of the previous head",
            [at, by](const HeadChange& c, std::int64_t i, std::int64_t j) {
              return at(c.b, c.h + by, i, j);
            });
    reading(by > 0 ? "the bias of the next key" : "the bias of the previous key",
            [at, by](const HeadChange& c, std::int64_t i, std::int64_t j) {
              return at(c.b, c.h, i, j + by);
            });
    reading(by > 0 ? "the bias of the next query" : "the bias of the previous query",
            [at, by](const HeadChange& c, std::int64_t i, std::int64_t j) {
              return at(c.b, c.h, i + by, j);
            });
  }
}

/// A bias that is read by rows within a rank's shard.
void add_local_biases(const Subject& subject, Families& families) {
  if (!subject.problem().bias) return;
  for (const Sharing& sharing : sharings(subject)) {
    // Place of a key or query within its rank, in rank order of the positions.
    const auto local = [sharing](bool query, std::int64_t rows) {
      std::vector<std::int64_t> held(index(sharing.ranks)), place;
      for (std::int64_t n = 0; n < rows; ++n) {
        const std::int64_t rank = query ? sharing.query_rank(0, n) : sharing.key_rank(0, n);
        place.push_back(held[index(rank)]++);
      }
      return place;
    };
    const auto of_query = local(true, subject.problem().queries);
    const auto of_key = local(false, subject.problem().keys);
    const char* const kSides[] = {"", "queries", "keys", "queries and keys"};
    for (const int sides : {2, 1, 3}) {
      add(families, "BIAS-OFFSET",
          std::string("the bias by rows within a rank, of ") + kSides[sides] + " (" + sharing.name +
              ")",
          [=](HeadChange& c) {
            c.bias = [=, before = c.bias](std::int64_t i, std::int64_t j) {
              return before((sides & 1) != 0 ? of_query[index(i)] : i,
                            (sides & 2) != 0 ? of_key[index(j)] : j);
            };
          });
    }
  }
}

/// Slopes of the wrong head, or applied wrongly.
void add_slopes(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const char* id = "BIAS-OFFSET";
  const auto slope_of = [&p](std::int64_t b, std::int64_t h) {
    return p.alibi_slopes.at(b, ((h % p.heads) + p.heads) % p.heads, 0, 0);
  };
  const auto sloped = [&](const char* words, std::function<double(const HeadChange&)> slope) {
    add(families, id, words, [slope](HeadChange& c) { c.slope = slope(c); });
  };
  add(families, id, "ALiBi is missing", [](HeadChange& c) { c.slope.reset(); });
  sloped("the sign of the ALiBi slope",
         [slope_of](const HeadChange& c) { return -slope_of(c.b, c.h); });
  sloped("the ALiBi slope of the KV head's number",
         [slope_of](const HeadChange& c) { return slope_of(c.b, c.problem->kv_head(c.h)); });
  sloped("the ALiBi slope of head 0 for all",
         [slope_of](const HeadChange& c) { return slope_of(c.b, 0); });
  sloped("the ALiBi slope of batch 0 for all",
         [slope_of](const HeadChange& c) { return slope_of(0, c.h); });
  sloped("the ALiBi slope of the next head",
         [slope_of](const HeadChange& c) { return slope_of(c.b, c.h + 1); });
  sloped("the ALiBi slope of the previous head",
         [slope_of](const HeadChange& c) { return slope_of(c.b, c.h - 1); });
  sloped("the ALiBi slopes in reverse",
         [slope_of](const HeadChange& c) { return slope_of(c.b, c.problem->heads - 1 - c.h); });
  sloped("ALiBi is scaled with the score",
         [slope_of](const HeadChange& c) { return c.scale_value() * slope_of(c.b, c.h); });
  sloped("ALiBi is not in the base of the exponential",
         [slope_of](const HeadChange& c) { return kLn2 * slope_of(c.b, c.h); });
  sloped("ALiBi is added twice",
         [slope_of](const HeadChange& c) { return 2 * slope_of(c.b, c.h); });
}

/// Distances that are counted wrongly.
void add_distances(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const char* id = "BIAS-OFFSET";
  add(families, id, "ALiBi by place, not by position",
      [](HeadChange& c) { c.position_q = c.position_k = [](std::int64_t n) { return n; }; });
  for (const std::int64_t by : {1, -1}) {
    add(families, id, "ALiBi distances off by one", [by](HeadChange& c) {
      c.position_q = [by, before = c.position_q](std::int64_t i) { return before(i) + by; };
    });
  }
  add(families, id, "ALiBi distances aligned at the other end", [&p](HeadChange& c) {
    const std::int64_t offset = p.keys - p.queries;
    const bool at_end = p.spec.causal == Causal::bottom_right;
    c.position_q = [=, before = c.position_q](std::int64_t i) {
      return at_end ? before(i) - offset : before(i) + offset;
    };
  });
  add(families, id, "ALiBi grows with the key's place: -slope (pos_q - pos_k) without a distance",
      [](HeadChange& c) {
        const double slope = *c.slope;
        c.bias = [slope, pq = c.position_q, pk = c.position_k, old = c.bias](std::int64_t i,
                                                                             std::int64_t j) {
          return (old ? old(i, j) : 0) - slope * static_cast<double>(pq(i) - pk(j));
        };
        c.slope.reset();
      });
  add(families, id, "ALiBi is slope times the key's position", [](HeadChange& c) {
    const double slope = *c.slope;
    c.bias = [slope, pk = c.position_k, old = c.bias](std::int64_t i, std::int64_t j) {
      return (old ? old(i, j) : 0) + slope * static_cast<double>(pk(j));
    };
    c.slope.reset();
  });
}

void add_distances_within_ranks(const Subject& subject, Families& families) {
  const char* id = "BIAS-OFFSET";
  for (const Sharing& sharing : sharings(subject)) {
    // The first position of the rank that holds a row, taken off on one side or on both.
    const auto start = [sharing](std::int64_t b, std::int64_t n, bool query) {
      const auto rank = [&](std::int64_t x) {
        return query ? sharing.query_rank(b, x) : sharing.key_rank(b, x);
      };
      std::int64_t first = n;
      while (first > 0 && rank(first - 1) == rank(n)) --first;
      return first;
    };
    for (const int sides : {1, 2, 3}) {
      if (sharing.layout != RingLayout::contiguous) continue;
      add(families, id,
          sides == 3 ? "ALiBi by positions within a rank"
                     : (sides == 1 ? "ALiBi with the queries' positions within their rank"
                                   : "ALiBi with the keys' positions within their rank"),
          [start, sides](HeadChange& c) {
            if ((sides & 1) != 0) {
              c.position_q = [start, b = c.b](std::int64_t i) { return i - start(b, i, true); };
            }
            if ((sides & 2) != 0) {
              c.position_k = [start, b = c.b](std::int64_t j) { return j - start(b, j, false); };
            }
          });
    }
  }
}

}  // namespace

void add_bias_classes(const Subject& subject, Families& families) {
  add_biases(subject, families);
  add_local_biases(subject, families);
  if (!subject.problem().alibi_slopes) return;
  add_slopes(subject, families);
  add_distances(subject, families);
  add_distances_within_ranks(subject, families);
}

}  // namespace ringproof::oracle
