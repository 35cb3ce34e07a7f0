// The probabilistic level of docs/contract.md, section 15: elements beyond e_prob (39), and the
// aggregate test (40) that sees a bias which no single element shows. What it finds makes a verdict
// SUSPECT, never FAIL. Bounds: oracle/contract/probabilistic.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "oracle/contract/probabilistic.hpp"
#include "oracle/contract/probable_sums.hpp"
#include "oracle/judge/repeats.hpp"
#include "oracle/judge/tally.hpp"

namespace ringproof::oracle {

/// What stays the same for all rows.
struct SuspicionRules {
  Contract contract, exact_casts;
  double lambda = 0;                 // (38), for every judged element and the aggregate tests
  std::optional<Repeats> queries{};  // absent: no row of q occurs twice

  /// `elements` of out, and so many aggregate tests of out and gradients.
  SuspicionRules(const Contract& judged, double elements, double aggregates = 1)
      : contract(judged),
        exact_casts(without_casts(judged)),
        lambda(azuma_factor(judged.prob_failure, statements(judged) * elements + aggregates)) {}

  /// What is said of each element: of its casts, and of its two sums where these are listed.
  static double statements(const Contract& judged) { return lists_sums(judged) ? 3 : 1; }
};

/// Compares one row of out whose deterministic bound is known.
void add_suspicion(const SuspicionRules&, const Problem&, const RowTruth&, const double* values,
                   std::int64_t stride, const RowBound&, const Tensor& out, const OutputRule&,
                   Suspicion&);

/// The bound of |lean| in (40).
double lean_bound(const Suspicion&, double lambda);
/// Precondition (c) of section 15 fails for the rows as a whole.
bool model_refuted(const Suspicion&);

}  // namespace ringproof::oracle
