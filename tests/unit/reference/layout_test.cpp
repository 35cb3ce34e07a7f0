// Layouts are bijections, and scatter and gather follow them (C1); exhaustive on small sizes.
#include "reference/layout.hpp"

#include <set>

#include "reference/shard.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::reference;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};

/// The text of the layouts said once more, slowly: the rank whose set of positions holds `row`.
bool owns(Layout layout, Index rows, Index ranks, Index rank, Index row) {
  const auto in_chunk = [&](Index chunks, Index c) {
    return row >= c * rows / chunks && row < (c + 1) * rows / chunks;
  };
  if (layout == Layout::contiguous) return in_chunk(ranks, rank);
  if (layout == Layout::striped) return row % ranks == rank;
  return in_chunk(2 * ranks, rank) || in_chunk(2 * ranks, 2 * ranks - 1 - rank);
}

}  // namespace

TEST_CASE("C1: owner and slot are a bijection, for every layout, N <= 64 and P <= 9") {
  Index wrong = 0, checked = 0;
  for (const Layout layout : kLayouts) {
    for (Index rows = 0; rows <= 64; ++rows) {
      for (Index ranks = 1; ranks <= 9; ++ranks) {
        const Sharding sharding{layout, rows, ranks};
        std::set<Index> seen;
        for (Index rank = 0; rank < ranks; ++rank) {
          Index previous = -1;
          for (Index place = 0; place < row_count(sharding, rank); ++place) {
            const Index row = global_row(sharding, rank, place);
            wrong += !owns(layout, rows, ranks, rank, row) || row <= previous;
            wrong += owner(sharding, row) != rank || slot(sharding, row) != place;
            wrong += !seen.insert(row).second;
            previous = row;
            ++checked;
          }
        }
        wrong += static_cast<Index>(seen.size()) != rows;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(checked == 3 * 9 * (64 * 65 / 2));
}

TEST_CASE("C1: with N = b P every rank owns b rows; otherwise chunks differ by one row at most") {
  Index wrong = 0;
  for (const Layout layout : kLayouts) {
    for (Index rows = 0; rows <= 64; ++rows) {
      for (Index ranks = 1; ranks <= 9; ++ranks) {
        const Sharding sharding{layout, rows, ranks};
        // Two chunks a rank may both be the longer ones.
        const Index spread = layout == Layout::zigzag ? 2 : 1;
        for (Index rank = 0; rank < ranks; ++rank) {
          const Index count = row_count(sharding, rank);
          wrong += count * ranks > rows + spread * ranks || count * ranks < rows - spread * ranks;
          wrong += rows % (2 * ranks) == 0 && count != rows / ranks;
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C1: rows_below counts the rows a rank owns below any row") {
  Index wrong = 0;
  for (const Layout layout : kLayouts) {
    for (Index rows = 0; rows <= 24; ++rows) {
      for (Index ranks = 1; ranks <= 9; ++ranks) {
        for (Index rank = 0; rank < ranks; ++rank) {
          Index count = 0;
          for (Index end = 0; end <= rows; ++end) {
            wrong += rows_below({layout, rows, ranks}, rank, end) != count;
            count += end < rows && owns(layout, rows, ranks, rank, end);
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C1: rows keep their place in long sequences, where a product of N and P is large") {
  for (const Layout layout : kLayouts) {
    const Sharding sharding{layout, (Index{1} << 40) + 12345, 1021};
    for (Index row = 7; row < sharding.rows; row += sharding.rows / 97) {
      CHECK(global_row(sharding, owner(sharding, row), slot(sharding, row)) == row);
    }
  }
}

TEST_CASE("C1: scatter deals each row of q, k and v to its owner and gather puts it back") {
  for (const Layout layout : kLayouts) {
    for (Index ranks = 1; ranks <= 9; ++ranks) {
      std::vector<double> q(2 * 3 * 7 * 2), k(2 * 1 * 5 * 2), v(2 * 1 * 5 * 1);
      for (std::size_t n = 0; n < q.size(); ++n) q[n] = static_cast<double>(n);
      for (std::size_t n = 0; n < k.size(); ++n) k[n] = -static_cast<double>(n);
      for (std::size_t n = 0; n < v.size(); ++n) v[n] = static_cast<double>(1000 + n);
      Problem<double> problem{.batches = 2,
                              .heads = 3,
                              .kv_heads = 1,
                              .queries = 7,
                              .keys = 5,
                              .head_dim = 2,
                              .value_dim = 1};
      problem.q = row_major<double>(q, {2, 3, 7, 2});
      problem.k = row_major<double>(k, {2, 1, 5, 2});
      problem.v = row_major<double>(v, {2, 1, 5, 1});
      const auto shards = scatter(problem, layout, ranks);

      // The first component of each query row goes on as if it were the answer.
      std::vector<ShardAnswer<double>> parts;
      std::size_t dealt_keys = 0;
      for (const auto& shard : shards) {
        ShardAnswer<double> part;
        for (std::size_t n = 0; n < shard.queries.q.size(); n += 2) {
          part.out.push_back(shard.queries.q[n]);
          part.lse.push_back(shard.queries.q[n + 1]);
        }
        parts.push_back(part);
        const auto rows = global_rows(shard.keys.sharding, shard.keys.origin);
        for (std::size_t b = 0; b < 2; ++b) {
          for (std::size_t place = 0; place < rows.size(); ++place, ++dealt_keys) {
            const std::size_t here = b * rows.size() + place;
            CHECK(shard.keys.k[2 * here] == -static_cast<double>(2 * (b * 5 + rows[place])));
            CHECK(shard.keys.v[here] == static_cast<double>(1000 + b * 5 + rows[place]));
          }
        }
      }
      CHECK(dealt_keys == 2 * 5);
      problem.value_dim = 1;
      const Answer<double> answer = gather(problem, layout, parts);
      for (std::size_t row = 0; row < answer.lse.size(); ++row) {
        CHECK(answer.out[row] == q[2 * row]);
        CHECK(answer.lse[row] == q[2 * row + 1]);
      }
    }
  }
}
