// The matrix instructions of a warp, on the slots that its lanes have handed in: where each lane's
// numbers lie in the matrices is the PTX manual's layout of fragments for m8n8 and m16n8k16.
#pragma once

#include <cstdint>

#include "cuda/host/grid.hpp"

namespace ringproof::cuda_host {

/// ldmatrix .x4: this lane's row of eight 16-bit numbers in, its share of four matrices out.
void load_matrices(std::uint32_t (&taken)[4], const void* row, bool transposed,
                   const Location& place);

/// mma m16n8k16, C += A B, for bf16 or fp16: this lane's shares.
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  bool bf16, const Location& place);

/// c + sum of a[k] b[k], summed as `model` says. Every product of two 16-bit numbers is exact.
float matrix_sum(MatrixSum model, float c,
                 const float* a,   // [16]
                 const float* b);  // [16]

}  // namespace ringproof::cuda_host
