// What merging R partial results adds to the budgets of a row, (17)-(20b) of docs/contract.md, and
// the underflow terms that depend on the final budgets, (16)(16a).
#pragma once

#include <vector>

#include "oracle/contract/merge_loops.hpp"
#include "oracle/contract/row_budget.hpp"

namespace ringproof::oracle {

/// Budgets under one merge form. Only weighted merges by LSE give every key budgets of its own; in
/// all other forms a key has C_j = keys.common + more, CL_j = keys.common_lse + more, and A_j
/// without the cast, B_j and z_j are the same for all.
struct MergeBudget {
  Merge form = Merge::none;  // none also stands for a single partial
  bool uniform = true;
  BudgetsBefore all{};                  // of the uniform forms
  double shared = 0;                    // z_j of the uniform forms
  MergedBudgets of_key;                 // of the others
  double numerator_before = 0;          // A_j without the cast and before merging, for (23)
  double rescales = 0;                  // n_al
  double division = 0;                  // tau_d, (15)
  double grow_division = 1;             // e^tau_d
  double relative_division = 0;         // expm1(tau_d)
  double numerator_max = 0;             // max A_j
  double denominator_max = 0;           // max B_j
  double grow_denominator = 1;          // e^{max B_j}
  double errors_max = 0;                // expm1(max A_j) + expm1(max B_j)
  double underflow_growth = 0;          // kappa, (16)
  double value_underflow = 0;           // G per sum of |v|
  double value_underflow_constant = 0;  // the rest of G
  double final_underflow = 0;           // G2 per sum of |v|
  double final_underflow_constant = 0;  // the rest of G2
  double denominator_underflow = 0;     // H
  double partial_underflow = 0;         // Pt, (16a)
  double leak = 0, leak_growth = 0;     // factors of max v - min v and of max |v| in (20b)
  double lost_weight = 0;               // factor of max |v| + G in (20c)
  double lse_total = 0;                 // ln n + tau + last two terms of lmax, (24)
  LseSums sums;                         // of the final budgets

  KeyBudgetView view(const RowKeys&) const;
};

/// tail of (24) for a given lmax and u_L.
LseTail lse_tail(const RowBudget&, double log_sum, double lse_u);

/// Budgets of `form`; Merge::none where there is one partial.
void merge_budget(const RowBudget&, Merge form, MergeBudget& out);

/// How much the budgets C + A + B of one key grow at most if keys of total weight W_S = 1 -
/// e^-growth are left out and the partials are merged by their LSE, (43).
double growth_without_keys(const RowBudget&, const MergeBudget&, double growth);

}  // namespace ringproof::oracle
