// Who owns which row of a ring (docs/formats.md, "Layouts"), written a second time: tests must not
// take it from the judge they test, nor from the tiers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "oracle/case/spec.hpp"

namespace ringproof::emulate {

/// Rank that owns a position, the place among its rows, and how many rows it has.
struct Ownership {
  std::int64_t rank = 0, place = 0, rows = 0;
};

namespace detail {
inline std::int64_t chunk_start(std::int64_t chunk, std::int64_t rows, std::int64_t chunks) {
  return chunk * rows / chunks;
}
inline std::int64_t chunk_of(std::int64_t position, std::int64_t rows, std::int64_t chunks) {
  std::int64_t chunk = 0;
  while (position >= chunk_start(chunk + 1, rows, chunks)) ++chunk;
  return chunk;
}
inline std::int64_t chunk_size(std::int64_t chunk, std::int64_t rows, std::int64_t chunks) {
  return chunk_start(chunk + 1, rows, chunks) - chunk_start(chunk, rows, chunks);
}
}  // namespace detail

inline Ownership owner_of(oracle::RingLayout layout, std::int64_t position, std::int64_t rows,
                          std::int64_t ranks) {
  using namespace detail;
  if (layout == oracle::RingLayout::striped) {
    const std::int64_t rank = position % ranks;
    return {rank, position / ranks, (rows - rank + ranks - 1) / ranks};
  }
  if (layout == oracle::RingLayout::contiguous) {
    const std::int64_t rank = chunk_of(position, rows, ranks);
    return {rank, position - chunk_start(rank, rows, ranks), chunk_size(rank, rows, ranks)};
  }
  const std::int64_t chunks = 2 * ranks, chunk = chunk_of(position, rows, chunks);
  const std::int64_t rank = std::min(chunk, chunks - 1 - chunk),
                     first = chunk_size(rank, rows, chunks);
  const std::int64_t before = chunk == rank ? 0 : first;
  return {rank, before + position - chunk_start(chunk, rows, chunks),
          first + chunk_size(chunks - 1 - rank, rows, chunks)};
}

/// Step at which the rank that holds query rows `own` meets the shard of `rank`.
inline std::int64_t step_of(oracle::RingOrder order, std::int64_t own, std::int64_t rank,
                            std::int64_t ranks) {
  const std::int64_t step = order == oracle::RingOrder::down ? own - rank : rank - own;
  return (step % ranks + ranks) % ranks;
}

}  // namespace ringproof::emulate
