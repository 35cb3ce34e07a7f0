#include "oracle/judge/ring_shards.hpp"

#include <algorithm>
#include <stdexcept>

namespace ringproof::oracle {

namespace {

/// Owner among P owners of [floor(r N / P), floor((r + 1) N / P)): the largest r whose part starts at or
/// before x. Positions come from files, so the product is taken in 128 bits.
std::int64_t contiguous_owner(std::int64_t x, std::int64_t positions, std::int64_t owners) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(x + 1) * owners - 1) / positions);
}

}  // namespace

std::int64_t rank_of_position(RingLayout layout, std::int64_t x, std::int64_t positions,
                              std::int64_t ranks) {
  switch (layout) {
    case RingLayout::contiguous:
      return contiguous_owner(x, positions, ranks);
    case RingLayout::zigzag: {
      const std::int64_t part = contiguous_owner(x, positions, 2 * ranks);
      return std::min(part, 2 * ranks - 1 - part);
    }
    case RingLayout::striped:
      return x % ranks;
  }
  throw std::logic_error("unknown ring layout");
}

std::vector<std::int64_t> ranks_of_keys(const Problem& problem, std::int64_t b,
                                        std::int64_t ranks) {
  const RingLayout layout = problem.spec.ring ? problem.spec.ring->layout : RingLayout::contiguous;
  const std::int64_t keys = problem.keys;
  const std::int64_t* positions = problem.position_k.data() + b * keys;
  std::vector<std::int64_t> sorted(positions, positions + keys);
  std::sort(sorted.begin(), sorted.end());
  bool numbered_once = true;
  for (std::int64_t j = 0; j < keys; ++j) {
    numbered_once = numbered_once && sorted[static_cast<std::size_t>(j)] == j;
  }
  std::vector<std::int64_t> owner(static_cast<std::size_t>(keys));
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t x = numbered_once ? positions[j] : j;
    owner[static_cast<std::size_t>(j)] = rank_of_position(layout, x, keys, ranks);
  }
  return owner;
}

}  // namespace ringproof::oracle
