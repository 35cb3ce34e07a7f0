// Positions, documents and lengths of a recipe's rows: pure functions on integers. The orders of
// ring layouts are written here once more, from the text of docs/formats.md.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/generate/random.hpp"
#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {

/// The integers of the case file; each list is empty where the file does not have it.
struct RowLists {
  std::vector<std::int32_t> key_lengths;                 // [B]
  std::vector<std::int32_t> cu_seqlens_q, cu_seqlens_k;  // [S + 1]
  std::vector<std::int64_t> positions;                   // [N], of queries and of keys
  std::vector<std::int32_t> documents;                   // [N]
};
RowLists row_lists(const Recipe&, Random);

/// Of the batches in turn: all keys, none, an odd number, one.
std::vector<std::int32_t> key_lengths(const Recipe&);
/// Positions in the order in which `ranks` ranks hold them, rank after rank.
std::vector<std::int64_t> zigzag_order(std::int64_t rows, std::int64_t ranks);
std::vector<std::int64_t> striped_order(std::int64_t rows, std::int64_t ranks);

}  // namespace ringproof::oracle
