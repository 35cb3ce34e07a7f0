// Right answers in the wrong place: LSE-LAYOUT, ROW-MAP, POSITION.
#include <cmath>

#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

/// Answers of one row stored in another.
namespace {

/// out, lse or both of a row are those of another one.
void map(Families& families, const char* id, std::string words, bool out, bool lse,
         const std::function<Row(const Row&)>& from, const char* also = "") {
  Family family;
  const std::function<Row(const Row&)> same = [](const Row& row) { return row; };
  family.setting.out_from = out ? from : same;
  family.setting.lse_from = lse ? from : same;
  family.mutants.push_back({id, std::move(words), also, {}});
  families.push_back(std::move(family));
}

void add_layouts(const Problem& p, Families& families) {
  const std::int64_t H = p.heads, N = p.queries, B = p.batches;
  struct Layout {
    const char* words;
    std::function<Row(const Row&)> from;
  };
  std::vector<Layout> layouts{{"[B, N, H] in the place of [B, H, N]",
                               [=](const Row& r) {
                                 const std::int64_t flat = r.h * N + r.i;
                                 return Row{r.b, flat % H, flat / H};
                               }},
                              {"[B, H, N] in the place of [B, N, H]",
                               [=](const Row& r) {
                                 const std::int64_t flat = r.i * H + r.h;
                                 return Row{r.b, flat / N, flat % N};
                               }},
                              {"[H, B, N] in the place of [B, H, N]",
                               [=](const Row& r) {
                                 const std::int64_t flat = (r.b * H + r.h) * N + r.i;
                                 return Row{flat / N % B, flat / N / B, flat % N};
                               }},
                              {"the next head",
                               [=](const Row& r) {
                                 return Row{r.b, (r.h + 1) % H, r.i};
                               }},
                              {"the previous head",
                               [=](const Row& r) {
                                 return Row{r.b, (r.h + H - 1) % H, r.i};
                               }},
                              {"head 0 for all",
                               [](const Row& r) {
                                 return Row{r.b, 0, r.i};
                               }},
                              {"batch 0 for all",
                               [](const Row& r) {
                                 return Row{0, r.h, r.i};
                               }},
                              {"the next batch entry",
                               [=](const Row& r) {
                                 return Row{(r.b + 1) % B, r.h, r.i};
                               }},
                              {"the rows in reverse",
                               [=](const Row& r) {
                                 return Row{r.b, r.h, N - 1 - r.i};
                               }},
                              {"the next row",
                               [=](const Row& r) {
                                 return Row{r.b, r.h, (r.i + 1) % N};
                               }},
                              {"the previous row", [=](const Row& r) {
                                 return Row{r.b, r.h, (r.i + N - 1) % N};
                               }}};
  for (const Layout& layout : layouts) {
    map(families, "LSE-LAYOUT", std::string("lse: ") + layout.words, false, true, layout.from);
    map(families, "ROW-MAP", std::string("out: ") + layout.words, true, false, layout.from);
    map(families, "ROW-MAP", std::string("out and lse: ") + layout.words, true, true, layout.from);
  }
}

void add_padded_rows(const Problem& p, Families& families) {
  const std::int64_t H = p.heads, N = p.queries;
  for (const std::int64_t size : {8, 16, 32, 64, 128, 256}) {
    const std::int64_t padded = (N + size - 1) / size * size;
    if (padded == N) continue;
    map(families, "LSE-LAYOUT", "lse: rows padded to " + std::to_string(padded), false, true,
        [=](const Row& r) {
          const std::int64_t flat = (r.b * H + r.h) * N + r.i, head = flat / padded;
          const bool written = flat % padded < N;
          return Row{head / H, head % H, written ? flat % padded : -1};
        });
  }
}

/// Rows of a tile that the wrong threads wrote.
void add_rows_of_tiles(const Problem& p, Families& families) {
  const std::int64_t N = p.queries;
  for (const std::int64_t tile : {16, 32, 64, 128, 8}) {
    for (const std::int64_t by : {8, -8, 4, -4, 16, -16, 1, -1, 2, -2}) {
      for (const std::int64_t last : {8, 4, 16}) {
        if (last >= tile || tile > N || std::abs(by) >= tile) continue;
        map(families, "ROW-MAP",
            "the last " + std::to_string(last) + " rows of every tile of " + std::to_string(tile) +
                " hold those " + std::to_string(by) + " farther",
            true, true, [=](const Row& r) {
              if (r.i % tile < tile - last) return r;
              const std::int64_t i = r.i + by;
              return Row{r.b, r.h, i < 0 || i >= N ? -1 : i};
            });
      }
    }
  }
}

void add_rank_order(const Subject& subject, Families& families) {
  const std::int64_t N = subject.problem().queries;
  for (const Sharing& sharing : sharings(subject)) {
    if (sharing.layout == RingLayout::contiguous || N != subject.problem().keys) continue;
    std::vector<std::int64_t> order, place(index(N));
    for (std::int64_t rank = 0; rank < sharing.ranks; ++rank) {
      for (std::int64_t i = 0; i < N; ++i) {
        if (sharing.query_rank(0, i) == rank) order.push_back(i);
      }
    }
    for (std::int64_t n = 0; n < N; ++n) place[index(order[index(n)])] = n;
    for (const bool forward : {true, false}) {
      const auto& table = forward ? order : place;
      const auto from = [table](const Row& r) { return Row{r.b, r.h, table[index(r.i)]}; };
      const std::string words = std::string("rows stay in rank order (") + sharing.name + ")";
      map(families, "POSITION", "out and lse: " + words, true, true, from, "ROW-MAP");
      map(families, "POSITION", "out: " + words, true, false, from, "ROW-MAP");
      map(families, "LSE-LAYOUT", "lse: " + words, false, true, from, "POSITION");
    }
  }
}

}  // namespace

void add_place_classes(const Subject& subject, Families& families) {
  add_layouts(subject.problem(), families);
  add_padded_rows(subject.problem(), families);
  add_rows_of_tiles(subject.problem(), families);
  add_rank_order(subject, families);
}

}  // namespace ringproof::oracle
