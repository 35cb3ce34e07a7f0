// The steps of the ladder as functions on the host: same arguments, one launch each. registry.hpp
// says what each is for and what it takes.
#pragma once

#include "cuda/check.hpp"
#include "cuda/kernels/arguments.cuh"

namespace ringproof::cuda {

inline constexpr int kMostWidth = 128;

/// One block of threads for every `rows` queries of each head.
template <class Element>
dim3 query_grid(const BlockArguments<Element>& block, int rows) {
  return dim3(static_cast<unsigned>((block.queries + rows - 1) / rows),
              static_cast<unsigned>(block.heads), static_cast<unsigned>(block.batches));
}

/// Lets a kernel have more shared memory than the 48 KiB that need no asking.
template <class Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)));
}

/// Calls work.template operator()<W>() with the block's width W.
template <class Work>
void with_width(int width, const Work& work) {
  if (width == 32) work.template operator()<32>();
  if (width == 64) work.template operator()<64>();
  if (width == 128) work.template operator()<128>();
}

template <class Element>
void launch_naive(const BlockArguments<Element>& block, cudaStream_t stream);
template <class Element>
void launch_shared_tiles(const BlockArguments<Element>& block, cudaStream_t stream);
template <class Element>
void launch_register_tiles(const BlockArguments<Element>& block, cudaStream_t stream);
template <class Element>
void launch_warp_rows(const BlockArguments<Element>& block, cudaStream_t stream);
template <class Element>
void launch_tensor_cores(const BlockArguments<Element>& block, cudaStream_t stream);
template <class Element>
void launch_async_copy(const BlockArguments<Element>& block, cudaStream_t stream);

}  // namespace ringproof::cuda
