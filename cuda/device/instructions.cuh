// What only PTX can say, each instruction once, with its host twin beside it: matrix loads, matrix
// products, asynchronous copies. Where a lane's numbers lie is PTX's layout of fragments.
#pragma once

#include <type_traits>

#include "cuda/device/numbers.cuh"

#if RINGPROOF_CUDA_HOST
#include "cuda/host/matrix.hpp"
#define RINGPROOF_PLACE \
  , const ringproof::cuda_host::Location& place = ringproof::cuda_host::Location::here()
#else
#define RINGPROOF_PLACE
#endif

namespace ringproof::cuda {

#if !RINGPROOF_CUDA_HOST
__device__ __forceinline__ std::uint32_t shared_address(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}
#endif

/// Four 8 x 8 matrices of 16-bit numbers; lane n names row n mod 8 of matrix n / 8. Each lane gets
/// two neighbours of a row of each.
__device__ __forceinline__ void load_matrices(std::uint32_t (&taken)[4],
                                              const void* row RINGPROOF_PLACE) {
#if RINGPROOF_CUDA_HOST
  cuda_host::load_matrices(taken, row, false, place);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(taken[0]), "=r"(taken[1]), "=r"(taken[2]), "=r"(taken[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

/// The same, each matrix transposed: two neighbours of a column.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&taken)[4],
                                                         const void* row RINGPROOF_PLACE) {
#if RINGPROOF_CUDA_HOST
  cuda_host::load_matrices(taken, row, true, place);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(taken[0]), "=r"(taken[1]), "=r"(taken[2]), "=r"(taken[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

/// C += A B with A [16, 16] by rows, B [16, 8] by columns, C [16, 8] in fp32.
template <class Element>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b_low,
                                             std::uint32_t b_high RINGPROOF_PLACE) {
  constexpr bool bf16 = std::is_same_v<Element, Bf16>;
#if RINGPROOF_CUDA_HOST
  cuda_host::multiply_add(c, a, {b_low, b_high}, bf16, place);
#else
  if constexpr (bf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
  }
#endif
}

/// Sixteen bytes from global to shared memory, behind the thread's back; zeros where not `inside`.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
#if RINGPROOF_CUDA_HOST
  cuda_host::copy_async(to, from, inside ? 16 : 0);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
#endif
}

/// The copies issued so far form a group.
__device__ __forceinline__ void commit_copies() {
#if RINGPROOF_CUDA_HOST
  cuda_host::commit_copies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `Pending` groups of this thread are under way.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
#if RINGPROOF_CUDA_HOST
  cuda_host::wait_copies(Pending);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

}  // namespace ringproof::cuda

#undef RINGPROOF_PLACE
