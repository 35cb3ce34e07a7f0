// Owners and merge steps of a ring (ring_partition.hpp).
#include "oracle/contract/ring_partition.hpp"

#include <algorithm>

namespace ringproof::oracle {

namespace {

/// The chunk that holds `position`, of `chunks` chunks [floor(c N / chunks), floor((c+1) N /
/// chunks)).
std::int64_t chunk_of(std::int64_t position, std::int64_t length, std::int64_t chunks) {
  return ((position + 1) * chunks - 1) / length;
}

bool one_document(const Problem& problem, std::int64_t b) {
  const auto first = problem.document_k.begin() + b * problem.keys;
  return std::all_of(first, first + problem.keys,
                     [&](std::int32_t document) { return document == *first; });
}

}  // namespace

std::int64_t owner_of(RingLayout layout, std::int64_t position, std::int64_t length,
                      std::int64_t ranks) {
  if (layout == RingLayout::striped) return position % ranks;
  if (layout == RingLayout::contiguous) return chunk_of(position, length, ranks);
  const std::int64_t chunk = chunk_of(position, length, 2 * ranks);
  return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
}

std::int64_t merge_step(RingOrder order, std::int64_t query_owner, std::int64_t key_owner,
                        std::int64_t ranks) {
  const std::int64_t distance =
      order == RingOrder::down ? query_owner - key_owner : key_owner - query_owner;
  return (distance + ranks) % ranks;
}

bool merge_steps(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t first_key,
                 const std::int64_t* index, std::int64_t count, std::int64_t ranks,
                 std::vector<std::int32_t>& steps) {
  if (!problem.spec.ring || ranks <= 1 || problem.queries != problem.keys ||
      !one_document(problem, b)) {
    return false;
  }
  const RingLayout layout = problem.spec.ring->layout;
  const std::int64_t length = problem.keys;
  const auto inside = [&](std::int64_t position) { return position >= 0 && position < length; };
  const std::int64_t query = problem.position_q[static_cast<std::size_t>(b * length + i)];
  if (!inside(query)) return false;
  const std::int64_t query_owner = owner_of(layout, query, length, ranks);
  if (static_cast<std::int64_t>(steps.size()) < count) {
    steps.resize(static_cast<std::size_t>(count));
  }
  const std::int64_t* position = problem.position_k.data() + b * length + first_key;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t key = position[index[k]];
    if (!inside(key)) return false;
    const std::int64_t key_owner = owner_of(layout, key, length, ranks);
    steps[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(
        merge_step(problem.spec.ring->order, query_owner, key_owner, ranks));
  }
  return true;
}

}  // namespace ringproof::oracle
