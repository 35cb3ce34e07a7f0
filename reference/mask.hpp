// Who may attend to whom, as pure functions on integers, one rule each; problem.hpp joins them.
// No scores and no number type here, so that every tier can use these functions as they are.
// Positions may be any 64-bit integers: no difference of them is formed that could overflow.
#pragma once

#include <span>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::reference {

/// Query i and key j meet only inside one document; a negative document is none at all.
constexpr bool same_document(Index document_q, Index document_k) {
  return document_q >= 0 && document_q == document_k;
}

/// A batch may be shorter than its tensor: keys from `length` on are padding.
constexpr bool inside_length(Index j, Index length) { return j < length; }

/// Causal attention looks back, and at itself.
constexpr bool causal_allows(Index position_q, Index position_k) {
  return position_k <= position_q;
}

/// |a - b|, which a signed integer might not hold.
constexpr std::uint64_t distance(Index a, Index b) {
  const auto high = static_cast<std::uint64_t>(a < b ? b : a);
  const auto low = static_cast<std::uint64_t>(a < b ? a : b);
  return high - low;
}

/// At most `left` positions back and `right` positions ahead, both inclusive; -1 means no limit.
constexpr bool window_allows(Index position_q, Index position_k, Index left, Index right) {
  const bool back = position_k <= position_q;
  const Index limit = back ? left : right;
  return limit < 0 || distance(position_q, position_k) <= static_cast<std::uint64_t>(limit);
}

/// Where the diagonal of a causal mask lies when there are not as many queries as keys.
enum class Alignment { top_left, bottom_right };

/// Position of query 0 on the axis on which key 0 has position 0.
constexpr Index query_offset(Alignment alignment, Index queries, Index keys) {
  return alignment == Alignment::bottom_right ? keys - queries : 0;
}

/// Document of every row of a packed batch: document s holds rows [boundaries[s], boundaries[s+1]).
inline std::vector<std::int32_t> documents_of(std::span<const std::int32_t> boundaries,  // [S + 1]
                                              Index rows) {
  std::vector<std::int32_t> document(rows, -1);
  for (std::size_t s = 0; s + 1 < boundaries.size(); ++s) {
    for (Index row = boundaries[s]; row < boundaries[s + 1]; ++row) {
      document[row] = static_cast<std::int32_t>(s);
    }
  }
  return document;
}

/// Position of every query row of a packed batch, counted and aligned inside its own document.
/// With `queries` in place of `keys` and top_left it gives the positions of the keys.
inline std::vector<Index> positions_in_documents(std::span<const std::int32_t> queries,  // [S + 1]
                                                 std::span<const std::int32_t> keys,     // [S + 1]
                                                 Alignment alignment, Index rows) {
  std::vector<Index> position(rows, 0);
  for (std::size_t s = 0; s + 1 < queries.size(); ++s) {
    const Index first = queries[s];
    const Index offset =
        query_offset(alignment, queries[s + 1] - queries[s], keys[s + 1] - keys[s]);
    for (Index row = first; row < queries[s + 1]; ++row) position[row] = row - first + offset;
  }
  return position;
}

}  // namespace ringproof::reference
