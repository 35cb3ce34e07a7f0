// Which rank owns which row (C1): three layouts, any number of rows N, any number of ranks P.
//   contiguous: N rows are cut into P chunks, rank r owns chunk r
//   zigzag:     they are cut into 2 P chunks, rank r owns chunks r and 2 P - 1 - r
//   striped:    rank r owns the rows with row mod P = r
// Pure integer functions. (rank, slot) -> row and row -> (owner, slot) are inverse to each other,
// and a rank's slots ascend with its rows. P need not divide N; with P > N some ranks own nothing.
#pragma once

#include <vector>

#include "reference/number.hpp"

namespace ringproof::reference {

enum class Layout { contiguous, zigzag, striped };

/// N rows dealt to P ranks.
struct Sharding {
  Layout layout = Layout::contiguous;
  Index rows = 0;   // N
  Index ranks = 1;  // P
};

/// First row of chunk c, if `rows` rows are cut into `chunks` chunks whose sizes differ by one at
/// most.
constexpr Index chunk_begin(Index rows, Index chunks, Index c) { return c * rows / chunks; }

/// The chunk that holds a row: the largest c with chunk_begin(c) <= row.
constexpr Index chunk_of(Index rows, Index chunks, Index row) {
  return ((row + 1) * chunks - 1) / rows;
}

/// How many rows below `end` lie in chunk c.
constexpr Index chunk_rows_below(Index rows, Index chunks, Index c, Index end) {
  const Index first = chunk_begin(rows, chunks, c), last = chunk_begin(rows, chunks, c + 1);
  return (end < first ? first : end > last ? last : end) - first;
}

/// How many rows below `end` the rank owns; with end = N, all it owns.
constexpr Index rows_below(const Sharding& sharding, Index rank, Index end) {
  const auto [layout, rows, ranks] = sharding;
  if (layout == Layout::contiguous) return chunk_rows_below(rows, ranks, rank, end);
  if (layout == Layout::zigzag) {
    return chunk_rows_below(rows, 2 * ranks, rank, end) +
           chunk_rows_below(rows, 2 * ranks, 2 * ranks - 1 - rank, end);
  }
  return end <= rank ? 0 : (end - rank - 1) / ranks + 1;
}

/// How many rows the rank owns.
constexpr Index row_count(const Sharding& sharding, Index rank) {
  return rows_below(sharding, rank, sharding.rows);
}

/// The rank that owns a row.
constexpr Index owner(const Sharding& sharding, Index row) {
  const auto [layout, rows, ranks] = sharding;
  if (layout == Layout::contiguous) return chunk_of(rows, ranks, row);
  if (layout == Layout::striped) return row % ranks;
  const Index chunk = chunk_of(rows, 2 * ranks, row);
  return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
}

/// The place of a row among the rows of its owner.
constexpr Index slot(const Sharding& sharding, Index row) {
  return rows_below(sharding, owner(sharding, row), row);
}

/// The row at a place of a rank; the inverse of (owner, slot).
constexpr Index global_row(const Sharding& sharding, Index rank, Index slot) {
  const auto [layout, rows, ranks] = sharding;
  if (layout == Layout::contiguous) return chunk_begin(rows, ranks, rank) + slot;
  if (layout == Layout::striped) return slot * ranks + rank;
  const Index low = chunk_begin(rows, 2 * ranks, rank);
  const Index low_size = chunk_begin(rows, 2 * ranks, rank + 1) - low;
  if (slot < low_size) return low + slot;
  return chunk_begin(rows, 2 * ranks, 2 * ranks - 1 - rank) + slot - low_size;
}

/// All rows of a rank, ascending.
inline std::vector<Index> global_rows(const Sharding& sharding, Index rank) {
  std::vector<Index> rows(row_count(sharding, rank));
  for (Index slot = 0; slot < static_cast<Index>(rows.size()); ++slot) {
    rows[slot] = global_row(sharding, rank, slot);
  }
  return rows;
}

}  // namespace ringproof::reference
