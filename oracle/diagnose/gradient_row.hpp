// One row of the backward pass under a rule of what goes wrong: what every pair, and the sink, adds
// to the gradients, and the sizes of those terms. Not here: where it is added up
// (gradient_mutant.hpp: dq, dk, dv; gradient_additions.hpp: dbias, dsinks).
#pragma once

#include <vector>

#include "oracle/diagnose/gradient_mutant.hpp"

namespace ringproof::oracle {

/// What is added to a sum, and the sum of the sizes of what it was made of.
struct Term {
  double value = 0, absolute = 0;
};

class RowOfPairs {
 public:
  RowOfPairs(const GradientPairs&, const HeadPairs&, const GradientRule&, std::int64_t i);

  /// Computes the members below for key j.
  void pair(std::int64_t j);
  /// -p_sink (D - dL).
  Term sink() const;

  std::vector<double> dout;  // [Dv]
  double p = 0;
  Term ds;    // p t f
  Term bias;  // p t, or dS where the rule forgets that the bias is behind the softcap

 private:
  const GradientPairs& pairs_;
  const HeadPairs& head_;
  const GradientRule& rule_;
  std::int64_t i_;
  double D_ = 0, absolute_D_ = 0, dlse_ = 0;
};

}  // namespace ringproof::oracle
