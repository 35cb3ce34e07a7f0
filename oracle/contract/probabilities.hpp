// The probabilities that a backward pass uses, (28) and (28a) of docs/contract.md: what the kernel
// has is p e^(x + lam) + g, where lam is common to the row, |x| <= X_j, |lam| <= Lam', |g| <= g_j.
#pragma once

#include <vector>

#include "oracle/contract/theorems.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

/// Arrays over the visible keys and the sink, [padded].
struct Probabilities {
  std::vector<double> in_ds, in_dv;      // X_j of dS, XV_j of dV
  std::vector<double> lost_ds, lost_dv;  // g_j of dS, and of dV with its cast
  double common = 0;                     // Lam'
};

/// p and ln p of the row, or those that the given LSE makes of the scores. (34)
struct ExactProbabilities {
  std::vector<double> p, log_p;  // [padded]
  double lse = 0;                // L
  void take(const RowKeys&, const RowTruth&);
  void take_given(const RowKeys&, const RowTruth&, const RowGradients&);
};

/// exp(s - L), where the LSE in use errs by `lse_error`. (28)
void recomputed_probabilities(const RowBudget&, const ExactProbabilities&, double lse_error,
                              Probabilities&);
/// The P of the forward pass under one merge form. (28a)
void stored_probabilities(const RowBudget&, const FormSums&, Probabilities&);
/// The kernel uses one or the other.
void join(Probabilities& all, const Probabilities& other, std::int64_t keys);

}  // namespace ringproof::oracle
