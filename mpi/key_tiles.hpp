// Tiles of rows as the vector tile cuts them, and what a mask leaves of a pair of tiles: nothing,
// everything, or something that must be looked at pair by pair.
#pragma once

#include <vector>

#include "mpi/journey.hpp"
#include "mpi/rank_problem.hpp"
#include "mpi/simd_kernels.hpp"

namespace ringproof::mpi {

/// Rows [first, first + count) of a list of rows, and their positions and documents.
struct RowTile {
  Index first = 0, count = 0;
  Segment segment;
  bool all_in_documents = true;  // and inside the key length
  bool ascending = true;         // positions never fall
};

enum class Coverage { nothing, everything, something };

/// Does every query see every key, as far as positions and documents go?
constexpr bool all_see(const PositionRules& rules, const RowTile& queries, const RowTile& keys) {
  if (!queries.all_in_documents || !keys.all_in_documents) return false;
  const Segment &q = queries.segment, &k = keys.segment;
  const bool one_document = q.document_low == q.document_high &&
                            k.document_low == k.document_high && q.document_low == k.document_low;
  if (!one_document) return false;
  if (rules.causal && k.position_high > q.position_low) return false;
  return reference::window_allows(q.position_high, k.position_low, rules.window_left,
                                  rules.window_right) &&
         reference::window_allows(q.position_low, k.position_high, rules.window_left,
                                  rules.window_right);
}

/// `looked_at`: a dense mask or a bias has a say in every pair.
constexpr Coverage coverage(const PositionRules& rules, const RowTile& queries, const RowTile& keys,
                            bool looked_at) {
  if (!may_see(rules, queries.segment, keys.segment)) return Coverage::nothing;
  return !looked_at && all_see(rules, queries, keys) ? Coverage::everything : Coverage::something;
}

/// `rows` in tiles of `size`; describe(n) gives position and document of the n-th, -1: in none.
inline std::vector<RowTile> cut(Index rows, Index size, const auto& describe) {
  std::vector<RowTile> tiles;
  for (Index first = 0; first < rows; first += size) {
    RowTile tile{first, std::min(size, rows - first), {}, true, true};
    Index last = std::numeric_limits<Index>::min();
    for (Index n = first; n < first + tile.count; ++n) {
      const auto [position, document] = describe(n);
      tile.segment.add(position, document);
      tile.ascending = tile.ascending && position >= last;
      last = position;
      tile.all_in_documents = tile.all_in_documents && document >= 0;
    }
    tiles.push_back(tile);
  }
  return tiles;
}

}  // namespace ringproof::mpi
