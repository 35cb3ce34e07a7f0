// Which rank owns a row, and in which order a ring merges (docs/formats.md, "Layouts"): pure
// functions on integers, the judge's own reading of that text.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// Rank that owns `position` of [0, length) on `ranks` ranks.
std::int64_t owner_of(RingLayout, std::int64_t position, std::int64_t length, std::int64_t ranks);

/// Step at which the rank `query_owner` merges what rank `key_owner` holds.
std::int64_t merge_step(RingOrder, std::int64_t query_owner, std::int64_t key_owner,
                        std::int64_t ranks);

/// Merge steps of the keys index[0..count) of the row's key range for query i. False, if the spec
/// does not determine them: no ring, another number of queries than keys, several documents, or
/// positions that are not those of `keys` rows.
bool merge_steps(const Problem&, std::int64_t b, std::int64_t i, std::int64_t first_key,
                 const std::int64_t* index, std::int64_t count, std::int64_t ranks,
                 std::vector<std::int32_t>& steps);

}  // namespace ringproof::oracle
