// Loops over the keys of one row for merges by LSE, (18)-(20) of docs/contract.md; compiled once
// for every vector target.
#pragma once

#include <cmath>

#include "oracle/contract/key_formulas.hpp"
#include "oracle/contract/row_keys.hpp"
#include "oracle/contract/weight_loops.hpp"

namespace ringproof::oracle {

/// tail(m, L) of (24): linear in both.
struct LseTail {
  double constant = 0, of_maximum = 0, of_lse = 0;
  double operator()(double maximum, double L) const {
    return constant + of_maximum * maximum + of_lse * L;
  }
};

/// Hoisted parts of (18)-(20).
struct WeightedMerge {
  LseTail tail;
  double L = 0;            // exact LSE of the row
  double up = 0;           // ln sum p e^{CL + B}
  double merges = 0;       // nm
  double logaddexp = 0;    // dl
  double running = 0;      // k_L
  double difference = 0;   // expm1(hat(u_sm))
  double numerator = 0;    // what A_j gains for every key
  double denominator = 0;  // what B_j gains for every key, once
  bool sequential = false;
};

/// What one key gains.
struct WeightedGain {
  double shared;       // z_j
  double numerator;    // beyond WeightedMerge::numerator
  double denominator;  // all of it
};

/// (18), then (19) or (20); `budget` is CL_j + B_j before.
inline WeightedGain weighted_gain(const WeightedMerge& m, double score, double budget) {
  const double reach = std::max(std::fabs(m.L), std::fabs(score)) + budget + m.up;  // La_j
  const double tail = m.tail(reach, reach);                                         // z_j
  const double left = 1 - m.merges * m.running;
  const double bound =
      left > 0 ? (reach + tail + m.merges * m.logaddexp) / left : HUGE_VAL;  // Lam_j
  const double of_merge = m.merges * (m.logaddexp + m.running * bound);
  const double span = m.L - score + 2 * (budget + m.up + tail + of_merge);
  const double once = m.denominator + m.difference * span + m.difference * bound;
  return {tail, m.difference * span, m.sequential ? of_merge : once};
}

/// Budgets before merging, the same for all keys but C_j and CL_j, which are keys.common + more.
struct BudgetsBefore {
  double more, numerator, denominator;
};

/// Budgets after merging, [padded]; the padding is zero.
struct MergedBudgets {
  std::vector<double> common, common_lse, numerator, denominator, shared;
};
void merge_weighted(const WeightedMerge&, const RowKeys&, const BudgetsBefore&, MergedBudgets&);

/// Maxima over the keys that (16) and (16a) need, beyond what is the same for all keys.
struct BudgetMaxima {
  double reach = 0;        // max x + t_c |x| + A - cast + z with x = s + eps - M
  double partial = 0;      // max min(0, s + ln n - L) + A - cast + B + CL
  double numerator = 0;    // max A
  double denominator = 0;  // max B
};
BudgetMaxima budget_maxima(const RowKeys&, const ArgumentBudget&, const MergedBudgets&,
                           double log_share);

/// max A + B over the keys that have a share of the row, and max ln p + A + B + C over the others:
/// those with ln p <= -600, whose square is no number of binary64. (20c)
struct LostShares {
  double heavy = 0, light = -HUGE_VAL;
};
LostShares lost_shares(const RowKeys&, const MergedBudgets&);
/// max of min(0, s + log_share) + CL for budgets that are the same for all keys but CL.
double partial_maximum(const RowKeys&, double more, double log_share);

/// max |s| + CL_j and min s - CL_j, with CL_j = keys.common_lse + more. (20a)
struct LseExtremes {
  double largest = 0, smallest = 0;
};
LseExtremes lse_extremes(const RowKeys&, double more);

}  // namespace ringproof::oracle
