// The gradients of a whole case as tensors of certified intervals, correctly rounded where that is
// decided. What `ringproof truth` writes beside out and lse if the case holds upstream gradients.
#pragma once

#include <optional>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/interval_tensor.hpp"
#include "oracle/judge/row_walk.hpp"
#include "oracle/judge/summed_rows.hpp"

namespace ringproof::oracle {

struct GradientTensors {
  IntervalTensor dq;      // [B, H, Nq, D]
  IntervalTensor dk;      // [B, Hkv, Nk, D]
  IntervalTensor dv;      // [B, Hkv, Nk, Dv]
  IntervalTensor dbias;   // shape of bias_shape(); empty without a bias
  IntervalTensor dsinks;  // [H]; empty without sinks
};

/// With `round_to`, rows of dq and keys of dk and dv are raised to more digits until all of them is
/// decided or `most_bits` digits are spent; sums of dbias and dsinks are written as they are.
GradientTensors gradient_tensors(const Problem&, const Upstream&, unsigned bits, const WalkOptions&,
                                 const std::optional<DType>& round_to = {},
                                 unsigned most_bits = kMostBits);

}  // namespace ringproof::oracle
