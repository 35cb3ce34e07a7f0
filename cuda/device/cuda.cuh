// The seam between nvcc and the host: CUDA and NCCL themselves, or cuda/host/, which has the same
// names. The project chooses by RINGPROOF_CUDA_HOST, not by what the compiler defines, because
// clang and nvcc each define something else. Everything above this file is one text for both.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#if RINGPROOF_CUDA_HOST

#include "cuda/host/nccl.hpp"
#include "cuda/host/runtime.hpp"

#define RINGPROOF_DYNAMIC_SHARED(name) \
  unsigned char* const name = ringproof::cuda_host::dynamic_shared_memory()
#define RINGPROOF_UNROLL
#define RINGPROOF_ROLLED

namespace ringproof::cuda {

/// kernel<<<grid, block, shared_bytes, stream>>>(arguments).
template <class Arguments>
void launch(const char* name, void (*kernel)(Arguments), dim3 grid, dim3 block,
            std::size_t shared_bytes, cudaStream_t stream, const Arguments& arguments,
            const cuda_host::Location& place = cuda_host::Location::here()) {
  cuda_host::enqueue_kernel(
      name, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream,
      [=] { kernel(arguments); }, place);
}

}  // namespace ringproof::cuda

#else

#include <cuda_runtime.h>
#include <nccl.h>

// One aligned array without a name of its own in any template: all kernels of a file share it.
extern __shared__ __align__(128) unsigned char ringproof_dynamic_shared[];
#define RINGPROOF_DYNAMIC_SHARED(name) unsigned char* const name = ringproof_dynamic_shared
#define RINGPROOF_UNROLL _Pragma("unroll")
#define RINGPROOF_ROLLED _Pragma("unroll 1")

namespace ringproof::cuda {

template <class Arguments>
void launch(const char* name, void (*kernel)(Arguments), dim3 grid, dim3 block,
            std::size_t shared_bytes, cudaStream_t stream, Arguments arguments) {
  void* list[] = {&arguments};
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block,
                                             list, shared_bytes, stream);
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(name) + ": " + cudaGetErrorString(error));
  }
}

}  // namespace ringproof::cuda

#endif
