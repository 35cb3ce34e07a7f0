// The launch functions of a step of the ladder, one for each type of inputs.
#pragma once

#include "cuda/kernels/ladder.cuh"
#include "cuda/tier.hpp"

namespace ringproof::cuda {

struct Launches {
  void (*fp32)(const BlockArguments<float>&, cudaStream_t);
  void (*bf16)(const BlockArguments<Bf16>&, cudaStream_t);
  void (*fp16)(const BlockArguments<Fp16>&, cudaStream_t);

  void operator()(const BlockArguments<float>& block, cudaStream_t stream) const {
    fp32(block, stream);
  }
  void operator()(const BlockArguments<Bf16>& block, cudaStream_t stream) const {
    bf16(block, stream);
  }
  void operator()(const BlockArguments<Fp16>& block, cudaStream_t stream) const {
    fp16(block, stream);
  }
};

/// Of one of ladder()'s steps.
const Launches& launches(const Kernel& kernel);

}  // namespace ringproof::cuda
