// The backward pass of an emulated kernel in real arithmetic, for any numerics: dq, dk, dv and the
// gradients of bias and sinks, from the forward answers as they were stored. Slow, and right by
// construction.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"
#include "tests/emulate/backward_numerics.hpp"
#include "tests/emulate/kernel.hpp"

namespace ringproof::emulate {

struct UpstreamValues {
  std::vector<double> dout;  // [B, H, Nq, Dv]
  std::vector<double> dlse;  // [B, H, Nq], or empty
};

struct GradientAnswers {
  std::vector<double> dq, dk, dv;     // as their inputs, unrounded
  std::vector<double> dbias, dsinks;  // [B, H, Nq, Nk] before broadcasting is summed; [H]
};

GradientAnswers run_backward(const oracle::Problem&, const Numerics&, const BackwardNumerics&,
                             const Answers& forward, const UpstreamValues&, std::uint64_t seed);

}  // namespace ringproof::emulate
