// The probabilistic level of docs/contract.md, (38)-(40): what errors of one row may be if the
// casts of P round as if at random. A violation is evidence under that model and never a proof, so
// it makes a verdict SUSPECT; the deterministic bounds of bound.hpp stay what they are.
// Listed roundings: the casts of P, the additions of sums that round to nearest (39a), and in the
// aggregate test the roundings of the output. All others stay adversarial. The coefficients of
// gradients, (41), are RowMagnitudes of backward_bound.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/contract/bound.hpp"

namespace ringproof::oracle {

/// lambda of (38) for so many judged elements and a total failure probability.
double azuma_factor(double failure, double elements);

/// Why the level says nothing about a contract; empty if it does.
std::string no_probabilistic_level(const Contract&);

/// Why it says nothing about the gradients of a contract; empty if it does.
std::string no_gradient_level(const Contract&);

/// The same contract with exact casts and an output that does not round: superscript 0.
Contract without_casts(const Contract&);
/// The same, of dS as well.
Contract without_gradient_casts(const Contract&);

struct ProbabilisticBound {
  std::vector<double> out;  // [Dv] e_prob of (39); at most e, and e where precondition (c) fails
  // What the row adds to (40), with g = sgn(o):
  double remainder = 0;    // (26) without casts and without the output's rounding
  double variance = 0;     // of the casts, by classes
  double drift = 0;        // sum p_j y_j (RN(w_j) / w_j - 1), for precondition (c)
  double drift_scale = 0;  // u_P^2 sum over classes of (sum p_j |y_j|)^2
};

/// `exact_casts` is without_casts(contract), `bound` that of the row under `contract`. The row is
/// one to which `bound` applies.
void bound_row_probabilistic(const Contract& contract, const Contract& exact_casts, const Problem&,
                             const RowTruth&, const double* values, std::int64_t stride,
                             const RowBound& bound, double lambda, ProbabilisticBound&);

}  // namespace ringproof::oracle
