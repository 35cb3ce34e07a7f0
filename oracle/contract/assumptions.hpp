// The assumptions of every theorem that a row can violate: no overflow, H1 of docs/contract.md. H2
// and H3 are the truth's (what counts as masked, rows without a key), H4 is in the theorems, H5 is
// a field of the contract.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "oracle/contract/row_budget.hpp"
#include "oracle/contract/theorems.hpp"
#include "oracle/contract/weight_loops.hpp"

namespace ringproof::oracle {

/// The assumption that fails on the row under some merge form, in words; empty if all hold.
std::string failed_assumption(const RowBudget&, std::span<const FormSums>, const Problem&,
                              const RowTruth&, const ColumnRange&, std::int64_t columns);

/// Largest dP, difference of dP and D, dS, and sum of gradients that their formats hold.
struct GradientLimits {
  double dp = 0, difference = 0, ds = 0, sum = 0;
  /// For the largest dP with its error, and D - dL that errs by `error`. D is a mean of dP, so its
  /// sums are no larger; dP - D, D - dL and dP + dL may come first.
  bool products_fit(double largest_dp, double delta, double error) const {
    return largest_dp <= dp && 2 * largest_dp + std::fabs(delta) + error <= difference;
  }
};
GradientLimits gradient_limits(const Contract&);

/// Omega of the format that a relative and an absolute error declare.
double largest_of_format(double u, double eta);

}  // namespace ringproof::oracle
