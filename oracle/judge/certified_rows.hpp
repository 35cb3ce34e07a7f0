// The truth of the rows of one chunk, from whichever path was asked for.
#pragma once

#include <array>
#include <functional>

#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

/// Interval arithmetic starts here and doubles its digits until it decides or ends here.
constexpr unsigned kFirstBits = 128, kMostBits = 2048;

/// Reusable memory of one thread.
using RowBlock = std::array<RowTruth, HeadTruth::kRows>;

/// Hands every row of the chunk to visit(n, row), n counting in the row set. bits = 0: the fast
/// path, whose radius may be infinite; else interval arithmetic of so many binary digits.
void certified_rows(const Problem&, const RowSet&, const Chunk&, unsigned bits, const HeadTruth&,
                    RowBlock& scratch, const std::function<void(std::int64_t, RowTruth&)>& visit);

/// True if the row needs no radius (empty, not applicable) or every radius is finite.
bool is_certified(const RowTruth&);

/// Raises a row to interval arithmetic until it is certified; returns the digits used, 0 if none
/// were.
unsigned certify(const Problem&, RowTruth&);

}  // namespace ringproof::oracle
