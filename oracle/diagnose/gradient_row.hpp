// One row of the backward pass under a rule of what goes wrong: what every pair, and the sink, adds
// to the gradients, and the terms of (29) and (33) that bound it, with the mutated numbers in place
// of the right ones. Not here: where it is added up (gradient_mutant.hpp: dq, dk, dv;
// gradient_additions.hpp: dbias, dsinks).
#pragma once

#include "oracle/diagnose/gradient_mutant.hpp"

namespace ringproof::oracle {

/// Log budgets of what a rule does to whole gradients: factors that are rounded, sums added again.
struct RuleBudgets {
  double query = 0, key = 0, value = 0, bias = 0, sinks = 0;
  RuleBudgets(const GradientPairs&, const GradientRule&);
};

/// A pair under the rule, as a kernel has it that makes this mistake and conforms otherwise.
struct WrongPair {
  GradientPair x{};                 // p, |t|, |f|, Ef, EP, g, p expm1(Y) of (29)
  double ds = 0, radius = 0;        // p t f in binary64, and how far that may be off
  double error = 0, underflow = 0;  // ES, es
  double grown_query = 0;           // p expm1(Y')
  double in_value = 0;              // expm1(XV + Lam' + GV)
  bool unbounded = false;           // nothing is known of it: dP or dS may overflow
};

/// What is added to an element of dbias or dsinks.
struct Addend {
  double value = 0;
  double error = 0, underflow = 0;  // bound; underflow is not made smaller by a factor
};

class RowOfPairs {
 public:
  RowOfPairs(const GradientPairs&, const HeadPairs&, const GradientRule&, const RuleBudgets&,
             std::int64_t i);

  /// Precondition: the query sees the key.
  WrongPair pair(std::int64_t j) const { return pair(j, !rule_.without_derivative); }
  /// p t, or dS where the rule forgets that the bias is behind the softcap; the sum over what the
  /// bias is broadcast over is still to come.
  Addend bias(std::int64_t j) const;
  /// -p_sink (D - dL), its sum included.
  Addend sink() const;

  const GradientBudget& budget() const { return budget_; }
  const RowOfHead& row() const { return row_; }
  const double* upstream() const { return upstream_; }  // [Dv]

 private:
  /// dP: its value, size, and how far the value may be off.
  struct Product {
    double value, absolute, radius;
  };
  Product product(std::int64_t j, const PairOfHead&) const;
  WrongPair pair(std::int64_t j, bool with_factor) const;
  void raise(const PairOfHead&, WrongPair&) const;
  double raised_budget(double p, double budget) const;

  const GradientPairs& pairs_;
  const HeadPairs& head_;
  const GradientRule& rule_;
  const RuleBudgets& budgets_;
  const RowOfHead& row_;
  std::int64_t i_;
  const double* upstream_;
  GradientBudget budget_;
  double after_query_ = 0;  // expm1 of what the rule adds to A_q
};

}  // namespace ringproof::oracle
