// How much work a causal or windowed ring gives to whom (C17, C18), counted exactly, without a
// tensor. Work is visible (query, key) pairs of one head. The ranks go step by step together,
// because a block can only move on when it has arrived: a step lasts as long as its busiest rank.
#pragma once

#include <algorithm>

#include "reference/layout.hpp"
#include "reference/ring_schedule.hpp"

namespace ringproof::reference {

/// A mask that depends on positions alone, for as many queries as keys.
struct PositionMask {
  bool causal = false;
  Index window_left = -1, window_right = -1;  // inclusive; -1: no limit
};

/// Keys [first, last) that the query at a position sees, of `rows` keys.
struct VisibleKeys {
  Index first = 0, last = 0;
};
constexpr VisibleKeys visible_keys(const PositionMask& mask, Index position, Index rows) {
  const Index first = mask.window_left < 0 ? 0 : std::max<Index>(0, position - mask.window_left);
  Index last = rows;
  if (mask.window_right >= 0) last = std::min(last, position + mask.window_right + 1);
  if (mask.causal) last = std::min(last, position + 1);
  return {first, std::max(first, last)};
}

/// Pairs that a rank's queries see in a block.
inline Index pairs_between(const Sharding& sharding, const PositionMask& mask, Index rank,
                           Index block) {
  Index pairs = 0;
  for (const Index position : global_rows(sharding, rank)) {
    const VisibleKeys keys = visible_keys(mask, position, sharding.rows);
    pairs += rows_below(sharding, block, keys.last) - rows_below(sharding, block, keys.first);
  }
  return pairs;
}

/// Pairs of every rank at every step.
struct Workload {
  Index ranks = 1;
  std::vector<Index> pairs;  // [P steps, P ranks]

  Index at(Index step, Index rank) const { return pairs[step * ranks + rank]; }
  Index of_rank(Index rank) const {
    Index sum = 0;
    for (Index step = 0; step < ranks; ++step) sum += at(step, rank);
    return sum;
  }
  Index busiest(Index step) const {
    const auto first = pairs.begin() + step * ranks;
    return *std::max_element(first, first + ranks);
  }
  Index total() const {
    Index sum = 0;
    for (Index rank = 0; rank < ranks; ++rank) sum += of_rank(rank);
    return sum;
  }
  /// Pairs one rank could have done while the ring ran: the sum of the busiest ranks' pairs.
  Index duration() const {
    Index sum = 0;
    for (Index step = 0; step < ranks; ++step) sum += busiest(step);
    return sum;
  }
  /// Share of all ranks' time that was spent waiting.
  double idle_fraction() const {
    const double available = static_cast<double>(duration()) * static_cast<double>(ranks);
    return available > 0 ? 1 - static_cast<double>(total()) / available : 0;
  }
  /// Work of the busiest rank over the mean; 1 is perfect balance.
  double imbalance() const {
    Index most = 0;
    for (Index rank = 0; rank < ranks; ++rank) most = std::max(most, of_rank(rank));
    const double mean = static_cast<double>(total()) / static_cast<double>(ranks);
    return mean > 0 ? static_cast<double>(most) / mean : 1;
  }
};

inline Workload workload(const Sharding& sharding, const PositionMask& mask, Direction direction) {
  Workload work{sharding.ranks, {}};
  for (Index step = 0; step < sharding.ranks; ++step) {
    for (Index rank = 0; rank < sharding.ranks; ++rank) {
      const Index block = block_at(step, rank, sharding.ranks, direction);
      work.pairs.push_back(pairs_between(sharding, mask, rank, block));
    }
  }
  return work;
}

}  // namespace ringproof::reference
