// What a kernel may use when a plain C++ compiler builds it: CUDA's own names for the indices, the
// block barrier, shuffles, votes, reductions and atomics, over fibres (grid.hpp). Not here: what
// PTX alone can say (cuda/device/ has it, each line beside its host twin), streams (runtime.hpp).
//
// Stricter than a GPU where strictness finds faults: a barrier is met by all threads of the block,
// in one line of the source, and a warp collective by all 32 lanes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/host/location.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
// CUDA has these two in the global name space.
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
__forceinline__ float2 make_float2(float x, float y) { return {x, y}; }
__forceinline__ float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
__forceinline__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

// Of the running thread; a switch of fibres sets them.
inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};

namespace ringproof::cuda_host {

/// What all lanes of a warp do together.
enum class Collective { shuffle, vote, reduce, sync, matrix_product, matrix_load };

/// What a lane hands in at a collective, and what it takes out.
struct alignas(16) Slot {
  unsigned char bytes[64];

  template <class T>
  T as() const {
    static_assert(sizeof(T) <= sizeof bytes && std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

/// Number of the running thread within its warp.
unsigned lane_number();

/// All 32 lanes hand in `size` bytes. When the last has come, `finish`, if any, works once on the
/// 32 slots; each lane gets all of them and may read them until its next collective.
const Slot* meet_warp(Collective kind, unsigned mask, const void* given, std::size_t size,
                      void (*finish)(Slot*), const Location& place);

/// The barrier of the block. Returns whether any thread handed in something other than zero.
int meet_block(int value, const Location& place);

/// The block's dynamic shared memory.
unsigned char* dynamic_shared_memory();

/// A read-modify-write that no other thread can split.
void note_atomic(const void* address, std::size_t size);

/// The slot of another lane, where `width` lanes form a group of their own.
template <class T>
T shuffled(unsigned mask, T value, unsigned source, const Location& place) {
  return meet_warp(Collective::shuffle, mask, &value, sizeof value, nullptr, place)[source]
      .template as<T>();
}

template <class T, class Join>
T reduced(unsigned mask, T value, Join join, const Location& place) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "hardware reduces 32-bit integers only");
  const Slot* slots = meet_warp(Collective::reduce, mask, &value, sizeof value, nullptr, place);
  T result = slots[0].template as<T>();
  for (int lane = 1; lane < 32; ++lane) result = join(result, slots[lane].template as<T>());
  return result;
}

}  // namespace ringproof::cuda_host

#define RINGPROOF_HERE \
  const ringproof::cuda_host::Location& place = ringproof::cuda_host::Location::here()

inline void __syncthreads(RINGPROOF_HERE) { ringproof::cuda_host::meet_block(0, place); }
inline int __syncthreads_or(int predicate, RINGPROOF_HERE) {
  return ringproof::cuda_host::meet_block(predicate, place);
}
inline void __syncwarp(unsigned mask = 0xffffffffU, RINGPROOF_HERE) {
  ringproof::cuda_host::meet_warp(ringproof::cuda_host::Collective::sync, mask, nullptr, 0, nullptr,
                                  place);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, RINGPROOF_HERE) {
  const unsigned group = ringproof::cuda_host::lane_number() & ~(width - 1U);
  return ringproof::cuda_host::shuffled(mask, value, group | (source & (width - 1U)), place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, RINGPROOF_HERE) {
  const unsigned lane = ringproof::cuda_host::lane_number();
  unsigned source = lane ^ static_cast<unsigned>(bits);
  if ((source & ~(width - 1U)) > (lane & ~(width - 1U))) source = lane;  // never a later group
  return ringproof::cuda_host::shuffled(mask, value, source, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, RINGPROOF_HERE) {
  const unsigned lane = ringproof::cuda_host::lane_number();
  const bool inside = (lane & (width - 1U)) + distance < static_cast<unsigned>(width);
  return ringproof::cuda_host::shuffled(mask, value, inside ? lane + distance : lane, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, RINGPROOF_HERE) {
  const auto* slots = ringproof::cuda_host::meet_warp(ringproof::cuda_host::Collective::vote, mask,
                                                      &predicate, sizeof predicate, nullptr, place);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    votes |= (slots[lane].as<int>() != 0 ? 1U : 0U) << lane;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, RINGPROOF_HERE) {
  return __ballot_sync(mask, predicate, place) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, RINGPROOF_HERE) {
  return __ballot_sync(mask, predicate, place) == 0xffffffffU ? 1 : 0;
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, RINGPROOF_HERE) {
  return ringproof::cuda_host::reduced(
      mask, value, [](T a, T b) { return a < b ? b : a; }, place);
}
template <class T>
T __reduce_add_sync(unsigned mask, T value, RINGPROOF_HERE) {
  return ringproof::cuda_host::reduced(
      mask, value, [](T a, T b) { return a + b; }, place);
}
#undef RINGPROOF_HERE

/// All threads of a grid share one processor thread, so plain arithmetic is already atomic.
template <class T>
__attribute__((no_sanitize("thread"))) T atomicAdd(T* address, T value) {
  ringproof::cuda_host::note_atomic(address, sizeof value);
  const T old = *address;
  *address = old + value;
  return old;
}
