// Tiles of step 5 and of the gradients in shared memory: 64 rows, each eight numbers longer than it
// needs to be, so that the eight rows of a matrix lie in different banks.
#pragma once

#include "cuda/kernels/matrix_rows.cuh"

namespace ringproof::cuda {

/// Rows [rows, W] in shared memory, with a gap behind each.
template <int W, class Element>
struct PaddedTile {
  static constexpr int kStride = W + 8;
  Element numbers[kMatrixKeys * kStride];

  __device__ __forceinline__ Element* at(int row, int column) {
    return numbers + row * kStride + column;
  }
  __device__ __forceinline__ const Element* at(int row, int column) const {
    return numbers + row * kStride + column;
  }
};

/// Rows [first, first + 64) of a tensor, sixteen bytes at a time; zeros behind the last.
template <int W, class Element>
__device__ __forceinline__ void load(PaddedTile<W, Element>& tile,
                                     const Element* rows,  // [count, W]
                                     int first, int count) {
  constexpr int kChunks = W / 8;
  for (int n = static_cast<int>(threadIdx.x); n < kMatrixKeys * kChunks; n += kMatrixThreads) {
    const int row = n / kChunks, column = n % kChunks * 8;
    const bool inside = first + row < count;
    const auto* from = reinterpret_cast<const uint4*>(
        rows + static_cast<std::size_t>(inside ? first + row : 0) * W + column);
    *reinterpret_cast<uint4*>(tile.at(row, column)) = inside ? *from : make_uint4(0, 0, 0, 0);
  }
}

}  // namespace ringproof::cuda
