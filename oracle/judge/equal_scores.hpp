// Rows without scores: if q or every visible k is zero, the answer is the plain mean of the values,
// and that can be summed without any error. Such rows are what T0 of docs/contract.md needs: its
// bound is 0 for a column whose sum vanishes, so no radius, however small, would decide it.
#pragma once

#include <cstdint>

#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// Replaces row.out by the exact mean (radius 0, or that of one division) where every visible score
/// is exactly 0 and the sums can be carried without error; returns whether it did. `values` as in
/// bound_row.
bool sharpen_equal_scores(RowTruth& row, const double* values, std::int64_t stride);

}  // namespace ringproof::oracle
