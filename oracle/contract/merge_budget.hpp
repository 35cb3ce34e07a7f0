// What merging R partial results adds to the budgets of a row, (17)-(20b) of docs/contract.md, and
// the underflow terms that depend on the final budgets, (16)(16a).
#pragma once

#include <vector>

#include "oracle/contract/row_budget.hpp"
#include "oracle/contract/weight_loops.hpp"

namespace ringproof::oracle {

/// Budgets under one merge form; the arrays are [padded].
struct MergeBudget {
  Merge form = Merge::none;             // none also stands for a single partial
  std::vector<double> common;           // C_j
  std::vector<double> common_lse;       // CL_j
  std::vector<double> numerator;        // A_j without the cast
  std::vector<double> denominator;      // B_j
  std::vector<double> shared;           // z_j
  double numerator_before = 0;          // A_j without the cast and before merging, for (23)
  bool uniform = true;                  // A_j without the cast and B_j are the same for all keys
  double rescales = 0;                  // n_al
  double division = 0;                  // tau_d, (15)
  double numerator_max = 0;             // max A_j
  double denominator_max = 0;           // max B_j
  double underflow_growth = 0;          // kappa, (16)
  double value_underflow = 0;           // G per sum of |v|
  double value_underflow_constant = 0;  // the rest of G
  double final_underflow = 0;           // G2 per sum of |v|
  double final_underflow_constant = 0;  // the rest of G2
  double denominator_underflow = 0;     // H
  double partial_underflow = 0;         // Pt, (16a)
  double leak = 0, leak_growth = 0;     // factors of max v - min v and of max |v| in (20b)
  double lse_total = 0;                 // ln n + tau + last two terms of lmax, (24)
  LseSums sums;                         // of the final budgets

  KeyBudgetView view(const RowKeys&) const;
};

/// tail(m, L, u_L) of (24) for a given lmax: linear in m and L.
class LseTail {
 public:
  LseTail(const RowBudget&, double log_sum, double lse_u);
  double operator()(double maximum, double L) const {
    return constant_ + of_maximum_ * maximum + of_lse_ * L;
  }

 private:
  double constant_, of_maximum_, of_lse_;
};

/// Budgets of `form`; Merge::none where there is one partial.
void merge_budget(const RowBudget&, Merge form, MergeBudget& out);

/// How much the budgets C + A + B of one key grow at most if keys of total weight W_S = 1 -
/// e^-growth are left out and the partials are merged by their LSE, (43).
double growth_without_keys(const RowBudget&, const MergeBudget&, double growth);

}  // namespace ringproof::oracle
