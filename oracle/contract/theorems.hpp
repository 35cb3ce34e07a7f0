// The theorems of docs/contract.md for one row and one merge form: T1 (21)(22) and T3 (25). T1R is
// ring_bound.hpp, T1F functional.hpp, T0 exact_columns.hpp; they meet in bound.cpp.
#pragma once

#include <span>

#include "oracle/contract/merge_budget.hpp"

namespace ringproof::oracle {

/// NaN wins, so that it is seen in the end.
inline void take_larger(double& largest, double value) {
  if (!(value <= largest)) largest = value;
}

/// What the theorems need of one merge form.
struct FormSums {
  MergeBudget budget;
  KeyWeights weights;
  ColumnErrors errors;
  double denominator = 0;  // D
};

/// Budgets of the row under every merge form of the contract; returns how many there are.
std::size_t row_forms(const Contract&, const Problem&, const RowTruth&, RowBudget&,
                      std::vector<FormSums>&);
/// Fills the weights and D. column_sums() comes between the two.
void form_weights(const RowBudget&, FormSums&);
/// Adds the sink to the errors. `out` is the truth, [Dv].
void finish_form(const RowBudget&, const double* out, std::int64_t columns, FormSums&);

/// G of one column. (16)
double column_underflow(const MergeBudget&, const ColumnRange&, std::int64_t column);
/// G2 of one column: (16), (20b), (20c).
double final_underflow(const RowBudget&, const MergeBudget&, const ColumnRange&,
                       std::int64_t column);
/// The smaller of (21) and (22); infinity if D <= 0.
double column_bound(const RowBudget&, const FormSums&, const ColumnRange&, double out,
                    std::int64_t column);

/// r of (25) for the sums of a budget and H / W: ln(1 + above + H / W), or -ln(shrunk - H / W).
double log_ratio(const LseSums&, double lost);
/// Lam of (25).
double lse_bound(const RowBudget&, const MergeBudget&);
/// Lam_max of (42): what (25) gives if averages over the keys are replaced by maxima.
double largest_lse_bound(const RowBudget&, const MergeBudget&);

/// max |v| of one column over the visible keys.
double largest_magnitude(const RowBudget&, const ColumnRange&, std::int64_t column);
/// What this evaluation itself may lose of weights that underflow: n numbers below 2^-1022 each.
double evaluation_underflow(const RowBudget&, double largest_value);

}  // namespace ringproof::oracle
