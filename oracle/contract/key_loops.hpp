// Loops over the keys of one row that apply the formulas of key_formulas.hpp; compiled once for
// every vector target of the processor.
#pragma once

#include "oracle/contract/key_formulas.hpp"
#include "oracle/contract/row_keys.hpp"

namespace ringproof::oracle {

struct ScoreExtremes {
  double upper = 0, lower = 0;  // M+ = max(s + eps), M- = max(s - eps)
  double lowest = 0;            // min(s - eps)
  double error = 0;             // max eps
  double abs_dot = 0;           // max |scale| sum |q k|
  double dyadic_distance = 0;   // max d_j of (12)
};

/// eps_j of every visible key, (4)-(6), plus the truth's own radius of the score.
void score_errors(const ScoreBudget&, double score_radius, RowKeys&);
/// Needs eps of the sink as well.
ScoreExtremes score_extremes(const RowKeys&, double max_score);

/// C_j and CL_j without their terms in n_al, (7)-(11), and y of (12) into `reach`: the smaller of
/// y_j and y'_j, where y_j is left out under lazy rescaling.
void key_budgets(const ArgumentBudget&, const ScoreExtremes&, RowKeys&);

}  // namespace ringproof::oracle
