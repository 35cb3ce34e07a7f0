// The aggregate test of the probabilistic level for dq, dk and dv: (41) of docs/contract.md. The
// errors of all elements together, each with the sign of its gradient, against what casts of P and
// dS and roundings of outputs are likely to do. It sees a dS or P that is truncated, which no
// bound of elements does. Not here: single elements, and gradients that are sums over whole heads.
#pragma once

#include <array>

#include "oracle/judge/gradient_judge.hpp"

namespace ringproof::oracle {

/// What was counted for dq, dk and dv.
struct GradientLeans {
  std::array<Suspicion, 3> of{};

  Suspicion& operator[](AnswerKind kind) { return of[index(kind)]; }
  const Suspicion& operator[](AnswerKind kind) const { return of[index(kind)]; }
  void merge(const GradientLeans& later) {
    for (std::size_t n = 0; n < of.size(); ++n) of[n].merge(later.of[n]);
  }

 private:
  static std::size_t index(AnswerKind kind) {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(AnswerKind::dq);
  }
};

/// Compares all judged elements of dq, dk, dv whose bounds are finite. Visits the rows twice: what
/// the errors of dk and dv are weighted with is known when all rows are in.
GradientLeans lean_of_gradients(const GradientRules&, const WalkOptions&);

}  // namespace ringproof::oracle
