// T1F of docs/contract.md, (26): the bound of sum_c g_c (out_c - o_c) for given column weights g.
// It is far below the sum of the element bounds, because scores, exponentials, casts and the
// denominator are the same for all columns.
#pragma once

#include "oracle/contract/theorems.hpp"

namespace ringproof::oracle {

/// What (26) sums over the keys and the columns of one merge form for one choice of g.
struct FunctionalSums {
  double y = 0, magnitude = 0;  // sum g o; S1 = sum |g o|
  double error =
      0;  // sum p [expm1(C)|y_j - y| + e^C (expm1(cast)|y_j| + e^cast expm1(A-cast) ay_j)]
  double absolute = 0;   // sum p [expm1(C) + e^C expm1(A)] ay_j
  double abs_sum = 0;    // sum ay_j
  double weight = 0;     // sum |g|
  double underflow = 0;  // sum |g| G2
  double largest = 0;    // sum |g| max|v|
};

FunctionalSums functional_sums(const RowBudget&, const FormSums&, const ColumnRange&,
                               const VirtualColumn&, const double* g, const double* out,
                               std::int64_t columns);

/// What follows the division: a log budget, and an underflow of each column.
struct AfterDivision {
  double budget;
  double underflow;
};

/// (26) with everything after the division.
double functional_bound(const RowBudget&, const FormSums&, const FunctionalSums&,
                        const AfterDivision&);
/// S_O of (26): sum |g out| for the outputs as computed, before they are rounded.
double functional_magnitude(const RowBudget&, const FormSums&, const FunctionalSums&);
/// (26), with the rounding of the output.
double functional_bound(const RowBudget&, const FormSums&, const FunctionalSums&);

/// Keys that are left out of a row, (43).
struct LeftOut {
  double weight = 0;       // W_S
  double denominator = 0;  // what replaces D
  double factor = 1;       // by which budgets of a merge by LSE may grow
  double extra = 0;        // and what that adds for every unit of max|v| + |o|
};
/// Prepares (43) for keys of total weight `weight`.
LeftOut left_out(const RowBudget&, const FormSums&, double weight);
/// (26) of the row without those keys, whose truth gives y and S1.
double functional_bound_without(const RowBudget&, const FormSums&, const FunctionalSums&,
                                const LeftOut&, double y, double magnitude);

}  // namespace ringproof::oracle
