// The assumptions of every theorem that a row can violate: no overflow, H1 of docs/contract.md. H2
// and H3 are the truth's (what counts as masked, rows without a key), H4 is in the theorems, H5 is
// a field of the contract.
#pragma once

#include <string>

#include "oracle/contract/row_budget.hpp"
#include "oracle/contract/weight_loops.hpp"

namespace ringproof::oracle {

/// The assumption that fails on the row, in words; empty if all hold.
std::string failed_assumption(const RowBudget&, const Problem&, const RowTruth&, const ColumnRange&,
                              std::int64_t columns);

/// Largest dP, dS, and sum of gradients that their formats hold.
struct GradientLimits {
  double dp = 0, ds = 0, sum = 0;
};
GradientLimits gradient_limits(const Contract&);

/// Omega of the format that a relative and an absolute error declare.
double largest_of_format(double u, double eta);

}  // namespace ringproof::oracle
