// Dealing a problem out to the ranks, and collecting their answers.
// A rank's queries stay with it; its keys and values are a block that travels (C1). Rows ascend
// within a rank, and everybody knows from the layout which rows those are: row numbers never
// travel.
#pragma once

#include <algorithm>

#include "reference/layout.hpp"
#include "reference/problem.hpp"

namespace ringproof::reference {

/// The queries of one rank. They never leave it.
template <class Real>
struct QueryShard {
  Sharding sharding;
  Index rank = 0;
  std::vector<Real> q;  // [B, H, n, D]

  Index rows() const { return row_count(sharding, rank); }
};

/// A block of keys and values, wherever it lies: what the arithmetic asks for.
template <class Real>
struct KeyView {
  Sharding sharding;
  Index origin = 0;
  Numbers<Real> k;  // [B, Hkv, n, D]
  Numbers<Real> v;  // [B, Hkv, n, Dv]

  Index rows() const { return row_count(sharding, origin); }
};

/// The keys and values of one rank: what the ring passes around. `origin` is its owner.
template <class Real>
struct KeyBlock {
  Sharding sharding;
  Index origin = 0;
  std::vector<Real> k;  // [B, Hkv, n, D]
  std::vector<Real> v;  // [B, Hkv, n, Dv]

  operator KeyView<Real>() const { return {sharding, origin, k, v}; }
  Index rows() const { return row_count(sharding, origin); }
  /// Bytes on the wire.
  Index bytes() const { return static_cast<Index>((k.size() + v.size()) * sizeof(Real)); }
};

template <class Real>
struct Shard {
  QueryShard<Real> queries;
  KeyBlock<Real> keys;
};

/// The finished rows of one rank: out [B, H, n, Dv], lse [B, H, n].
template <class Real>
struct ShardAnswer {
  std::vector<Real> out, lse;
};

/// Rows of one rank out of a tensor [B, H, N, D], dequantised.
template <class Real>
std::vector<Real> take_rows(const View<Real>& stored, const Factors<Real>& factors, Index batches,
                            Index heads, Index width, const Sharding& sharding, Index rank) {
  std::vector<Real> taken;
  taken.reserve(batches * heads * row_count(sharding, rank) * width);
  for (Index b = 0; b < batches; ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (const Index row : global_rows(sharding, rank)) {
        for (Index d = 0; d < width; ++d) {
          taken.push_back(dequantised(stored, factors, b, h, row, d));
        }
      }
    }
  }
  return taken;
}

/// One shard a rank. Queries and keys are dealt by the same layout, each by its own length.
template <class Real>
std::vector<Shard<Real>> scatter(const Problem<Real>& problem, Layout layout, Index ranks) {
  const Sharding queries{layout, problem.queries, ranks}, keys{layout, problem.keys, ranks};
  std::vector<Shard<Real>> shards;
  for (Index rank = 0; rank < ranks; ++rank) {
    shards.push_back({{queries, rank,
                       take_rows(problem.q, problem.q_scale, problem.batches, problem.heads,
                                 problem.head_dim, queries, rank)},
                      {keys, rank,
                       take_rows(problem.k, problem.k_scale, problem.batches, problem.kv_heads,
                                 problem.head_dim, keys, rank),
                       take_rows(problem.v, problem.v_scale, problem.batches, problem.kv_heads,
                                 problem.value_dim, keys, rank)}});
  }
  return shards;
}

/// Puts the rows of one rank, [heads, n, width], where they belong in [heads, rows, width].
template <class Real>
void put_rows(const std::vector<Real>& part, Index rows, const Sharding& sharding, Index rank,
              Index width, std::vector<Real>& whole) {
  const std::vector<Index> mine = global_rows(sharding, rank);
  const Index n = static_cast<Index>(mine.size());
  const Index heads = n * width == 0 ? 0 : static_cast<Index>(part.size()) / (n * width);
  for (Index head = 0; head < heads; ++head) {
    for (Index slot = 0; slot < n; ++slot) {
      const auto from = part.begin() + (head * n + slot) * width;
      std::copy(from, from + width, whole.begin() + (head * rows + mine[slot]) * width);
    }
  }
}

/// Puts the rows of all ranks back into the order of the problem.
template <class Real>
Answer<Real> gather(const Problem<Real>& problem, Layout layout,
                    const std::vector<ShardAnswer<Real>>& parts) {
  const Sharding queries{layout, problem.queries, static_cast<Index>(parts.size())};
  const Index heads = problem.batches * problem.heads;
  Answer<Real> answer{std::vector<Real>(heads * problem.queries * problem.value_dim),
                      std::vector<Real>(heads * problem.queries)};
  for (Index rank = 0; rank < queries.ranks; ++rank) {
    put_rows(parts[rank].out, problem.queries, queries, rank, problem.value_dim, answer.out);
    put_rows(parts[rank].lse, problem.queries, queries, rank, 1, answer.lse);
  }
  return answer;
}

}  // namespace ringproof::reference
