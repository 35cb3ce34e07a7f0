// What the backward kernels are given: one rank's queries and upstream gradients, one block of keys
// and values, and the sums of the gradients so far, to which the block's part is added.
#pragma once

#include "cuda/kernels/arguments.cuh"

namespace ringproof::cuda {

template <class Element>
struct GradientArguments {
  BlockArguments<Element> block;  // without states
  const Element* dout = nullptr;  // [B, H, queries, width]
  const float* lse = nullptr;     // [B, H, queries]
  const float* delta = nullptr;   // [B, H, queries], D - dL of docs/math.md (22)
  float* dq = nullptr;            // [B, H, queries, width], in and out
  float* dk = nullptr;            // [B, Hkv, keys, width]
  float* dv = nullptr;            // [B, Hkv, keys, width]
};

/// Three launches: dq, dk, dv. Not for biases, whose gradient has a place for every pair.
template <class Element>
void launch_gradients(const GradientArguments<Element>& arguments, cudaStream_t stream);

}  // namespace ringproof::cuda
