// The constants of section 3 of docs/contract.md for one row, as far as they do not depend on how
// partial results are merged: (4)-(15). Merging is merge_budget.hpp.
#pragma once

#include "oracle/contract/key_loops.hpp"
#include "oracle/contract/visible_terms.hpp"

namespace ringproof::oracle {

struct RowBudget {
  const Contract* contract = nullptr;
  RowKeys keys;
  Terms terms, partial;  // all visible keys; those of one partial
  ArgumentBudget argument;
  ScoreExtremes extremes;
  bool equal_scores = false;  // every exponential is exp(0) = 1, (26a)
  double n = 0;               // keys, the sink among them
  double R = 1;               // partial results
  double blocks = 0;          // T
  double rescales = 0;        // n_al without the R-1 of a merge
  double sum_rescales = 0;    // n_rs
  double cast_max = 0;        // max cast_j
  double product_growth = 1;  // of q.k while it is summed, scaled and stored, (4)
  double softmax_hat = 0;     // hat(u_sm)
  double exp_hat = 0;         // hat(eps_e)
  double lower = 0;           // M-
  double L = 0, W = 1;        // logarithm of the denominator; sum of e^{s - M}
  double numerator = 0;       // A_j without the cast and before merging, (13)
  double denominator = 0;     // B_j before merging, (14)
  double division = 0;        // n_div hat(u_div)
  double gamma_pv = 0;        // Gamma_pv

  double max_score() const { return argument.max_score; }
  double upper() const { return argument.upper; }
  double temperature() const { return argument.temperature; }
  double lazy() const { return argument.lazy; }
};

/// True if u_c multiplies all scores alike, so that it is a temperature; a softcap or a bias ends
/// that.
bool constant_is_temperature(const RowKeys&);

/// |scale|, or an upper bound of the real number 1/sqrt(D).
double scale_of(const Problem&);

/// Fills `budget` from the truth of one row. Precondition: the row has a key or a sink.
void row_budget(const Contract&, const Problem&, const RowTruth&, RowBudget& budget);

}  // namespace ringproof::oracle
