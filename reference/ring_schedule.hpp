// The ring as pure functions on integers: which block a rank holds at a step, and whom it talks to.
// Ranks and blocks carry the same numbers: block r is the keys and values that rank r owns (C5).
//   down: at step t rank r holds block (r - t) mod P and sends to r + 1  (the document's direction)
//   up:   at step t rank r holds block (r + t) mod P and sends to r - 1
// For a fixed rank block_at is a bijection of steps and blocks: it meets every key once (C6).
#pragma once

#include "reference/number.hpp"

namespace ringproof::reference {

enum class Direction { down, up };

/// a mod P, in [0, P) also for negative a.
constexpr Index modulo(Index a, Index ranks) { return (a % ranks + ranks) % ranks; }

/// The block that a rank holds at a step (13).
constexpr Index block_at(Index step, Index rank, Index ranks, Direction direction) {
  return modulo(direction == Direction::down ? rank - step : rank + step, ranks);
}

/// The step at which a rank holds a block (14); the inverse of block_at for a fixed rank.
constexpr Index step_of(Index block, Index rank, Index ranks, Direction direction) {
  return modulo(direction == Direction::down ? rank - block : block - rank, ranks);
}

/// The neighbour to whom a rank sends.
constexpr Index send_to(Index rank, Index ranks, Direction direction) {
  return modulo(direction == Direction::down ? rank + 1 : rank - 1, ranks);
}

/// The neighbour from whom a rank receives.
constexpr Index receive_from(Index rank, Index ranks, Direction direction) {
  return modulo(direction == Direction::down ? rank - 1 : rank + 1, ranks);
}

/// P blocks are met in P steps, but the last one need not travel on: P - 1 transfers.
constexpr Index step_count(Index ranks) { return ranks; }
constexpr bool transfers_after(Index step, Index ranks) { return step < ranks - 1; }

/// The rank at which a block ends its journey: one seat short of home.
constexpr Index last_holder(Index block, Index ranks, Direction direction) {
  return receive_from(block, ranks, direction);
}

}  // namespace ringproof::reference
