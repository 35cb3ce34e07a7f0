// What one row of the backward pass hoists out of its loops over keys: the probabilities in use,
// ED, and the budgets of dP, dS and dq; (27)-(29), (32), (34) of docs/contract.md.
#pragma once

#include "oracle/contract/backward_bound.hpp"
#include "oracle/contract/delta_error.hpp"
#include "oracle/contract/gradient_parts.hpp"

namespace ringproof::oracle {

/// Memory that one thread reuses from row to row.
struct BackwardScratch {
  RowBudget row;
  std::vector<FormSums> forms;
  std::size_t form_count = 0;
  ExactProbabilities exact;
  Probabilities used, other;
  GradientKeys keys;
  DeltaScratch delta;
  CastClasses classes;
  std::vector<double> out;                           // [Dv]
  std::vector<double> signed_sum, weighted, extent;  // [D] sums over the keys
};

/// True if the contract's backward pass takes the outputs as given, may recompute P, may store it.
bool isolated(const Contract&);
bool may_recompute(const Contract&);
bool may_store(const Contract&);

/// The hoisted parts of dP and of the softcap's derivative. (27a), (29)
void product_budget(const Contract&, const Problem&, const BackwardHead&, const RowGradients&,
                    GradientBudget&);
/// The hoisted parts of dS and dq, and the sum that dq is. (29), (32)
void score_gradient_budget(const Contract&, const Problem&, const RowBudget&, GradientSum& query,
                           GradientBudget&);
/// Fills s.used with the largest budgets of all probabilities that the contract allows; returns ED
/// before its rounding, the largest over every D it allows. (27)-(28a), (34)
double used_probabilities(const Contract&, const BackwardHead&, const RowGradients&,
                          BackwardScratch& s);
/// The sink's budgets. (33)
SinkParts sink_parts(const Contract&, const Problem&, const GradientBudget&,
                     const BackwardScratch&);
/// Everything else that RowGradientParts holds, once the row is bounded; then `s` is spent.
void hand_out_parts(const Contract&, const Problem&, const BackwardHead&, const RowTruth&,
                    const RowGradients&, const GradientBudget&, BackwardScratch& s,
                    RowGradientParts&);
/// ED: one rounding of D - dL, and the truth's own radius. (27a)
void delta_budget(const Contract&, const RowGradients&, double error, GradientBudget&);

}  // namespace ringproof::oracle
