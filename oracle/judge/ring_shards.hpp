// Which rank owns which key: the layouts of docs/formats.md as pure functions on integers.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// Rank that owns position x of N positions dealt out to P ranks. Precondition: 0 <= x < N.
std::int64_t rank_of_position(RingLayout, std::int64_t x, std::int64_t positions,
                              std::int64_t ranks);

/// Rank of every key of batch entry b: the layout of the spec's ring, else contiguous. By position where
/// positions number the keys once each, else (packed documents) by place in the tensor.
std::vector<std::int64_t> ranks_of_keys(const Problem&, std::int64_t b,
                                        std::int64_t ranks);  // [Nk]

}  // namespace ringproof::oracle
