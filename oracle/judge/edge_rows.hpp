// The order in which rows are judged while time lasts: where kernels go wrong first. Rows at the
// edges of sequences, documents and ranks, then rows at the edges of tiles, then all others; within
// each of these in an order drawn from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// Every row number (b * H + h) * Nq + i once, the same for a seed on every machine.
std::vector<std::int64_t> edges_first(const Problem&, std::uint64_t seed);

/// How early row i of batch b comes: 0 an edge of sequence, document or rank, 1 of a tile, 2 else.
int edge_class(const Problem&, std::int64_t b, std::int64_t i);

}  // namespace ringproof::oracle
