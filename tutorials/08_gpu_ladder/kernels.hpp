// The first steps of the ladder, small: naive, shared tiles, several rows a thread. This is CUDA as
// nvcc reads it; here any compiler does, against cuda/host/.
#pragma once

#include "cuda/device/cuda.cuh"
#include "tutorials/08_gpu_ladder/head.hpp"

namespace ringproof::tutorials {

// [naive]
/// One thread a query, everything from device memory.
__global__ inline void naive(Head head) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float q[kD];
  for (int d = 0; d < kD; ++d) q[d] = from_device(head.q[i * kD + d]);
  Row row;
  for (int j = 0; j < kN; ++j) {
    float s = 0;
    for (int d = 0; d < kD; ++d) s += q[d] * from_device(head.k[j * kD + d]);
    row.absorb(s, [&](int d) { return from_device(head.v[j * kD + d]); });
  }
  for (int d = 0; d < kD; ++d) head.out[i * kD + d] = row.o[d] / row.l;
}
// [/naive]

constexpr int kTile = 16;  // keys

struct Tile {
  float k[kTile][kD], v[kTile][kD];
};

/// Which of the two barriers of a tile stand there: the text takes them away, one at a time.
enum class Barriers { both, not_after_loading, not_before_loading };

// [load]
/// Keys [first, first + 16) into shared memory, each number by one thread of the block.
__device__ inline void load(Tile& tile, const Head& head, int first) {
  for (int n = static_cast<int>(threadIdx.x); n < kTile * kD; n += static_cast<int>(blockDim.x)) {
    tile.k[n / kD][n % kD] = from_device(head.k[first * kD + n]);
    tile.v[n / kD][n % kD] = from_device(head.v[first * kD + n]);
  }
}
// [/load]

// [tiles]
/// The block of threads brings a tile of keys near, and all of its rows use it. A thread has kEach
/// rows, and uses each number it reads for all of them.
template <int kEach, Barriers kBarriers>
__global__ void tiles(Head head) {
  RINGPROOF_DYNAMIC_SHARED(memory);
  Tile& tile = *reinterpret_cast<Tile*>(memory);
  const int first_row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kEach;
  float q[kEach][kD];
  for (int n = 0; n < kEach * kD; ++n) q[n / kD][n % kD] = from_device(head.q[first_row * kD + n]);
  Row row[kEach];
  for (int first = 0; first < kN; first += kTile) {
    if (kBarriers != Barriers::not_before_loading) __syncthreads();  // the last tile has been read
    load(tile, head, first);
    if (kBarriers != Barriers::not_after_loading) __syncthreads();  // this tile is there
    for (int j = 0; j < kTile; ++j) {
      float s[kEach] = {}, value[kD];
      for (int d = 0; d < kD; ++d) {
        const float k = from_shared(tile.k[j][d]);
        for (int r = 0; r < kEach; ++r) s[r] += q[r][d] * k;
      }
      for (int d = 0; d < kD; ++d) value[d] = from_shared(tile.v[j][d]);
      for (int r = 0; r < kEach; ++r) row[r].absorb(s[r], [&](int d) { return value[d]; });
    }
  }
  for (int r = 0; r < kEach; ++r) {
    for (int d = 0; d < kD; ++d) head.out[(first_row + r) * kD + d] = row[r].o[d] / row[r].l;
  }
}
// [/tiles]

// [halves]
/// Half of the threads fetch a number each, the other half uses them. A barrier is missing.
__global__ inline void halves(Head head) {
  RINGPROOF_DYNAMIC_SHARED(memory);
  float* const numbers = reinterpret_cast<float*>(memory);
  const int half = static_cast<int>(blockDim.x) / 2, t = static_cast<int>(threadIdx.x) - half;
  if (t < 0) numbers[t + half] = from_device(head.v[t + half]);
  if (t >= 0) head.out[static_cast<int>(blockIdx.x) * half + t] = from_shared(numbers[t]);
}
// [/halves]

// [early-return]
/// A tail that is guarded the wrong way: threads without a query leave before the barrier.
__global__ inline void early_return(Head head) {
  RINGPROOF_DYNAMIC_SHARED(memory);
  Tile& tile = *reinterpret_cast<Tile*>(memory);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kN - 3) return;
  load(tile, head, 0);
  __syncthreads();
  head.out[i * kD] = from_shared(tile.v[0][0]);
}
// [/early-return]

}  // namespace ringproof::tutorials
