// Numbers on the device: 16-bit types as stored, and the functions of fp32 that softmax needs.
// Each has a device form and, beside it, the host form that stands for it.
#pragma once

#include <cstdint>

#include "cuda/device/cuda.cuh"
#include "reference/number.hpp"

#if RINGPROOF_CUDA_HOST
#include <cmath>

#include "cuda/sixteen_bits.hpp"
#endif

namespace ringproof::cuda {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

__device__ __forceinline__ float minus_infinity() { return -INFINITY; }
__device__ __forceinline__ bool is_minus_infinity(float x) { return x == -INFINITY; }

__device__ __forceinline__ float to_float(float number) { return number; }

__device__ __forceinline__ float to_float(Bf16 number) {
#if RINGPROOF_CUDA_HOST
  return float_of_bf16(number.bits);
#else
  return __uint_as_float(static_cast<std::uint32_t>(number.bits) << 16);
#endif
}

__device__ __forceinline__ float to_float(Fp16 number) {
#if RINGPROOF_CUDA_HOST
  return float_of_fp16(number.bits);
#else
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(number.bits));
  return wide;
#endif
}

/// Two numbers rounded to nearest, the first in the low half.
template <class Element>
__device__ std::uint32_t pack(float low, float high);

template <>
__device__ __forceinline__ std::uint32_t pack<Bf16>(float low, float high) {
#if RINGPROOF_CUDA_HOST
  return bf16_of_float(low) | static_cast<std::uint32_t>(bf16_of_float(high)) << 16;
#else
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#endif
}

template <>
__device__ __forceinline__ std::uint32_t pack<Fp16>(float low, float high) {
#if RINGPROOF_CUDA_HOST
  return fp16_of_float(low) | static_cast<std::uint32_t>(fp16_of_float(high)) << 16;
#else
  std::uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#endif
}

/// The exponent field of a 16-bit number when it is infinite or not a number.
template <class Element>
inline constexpr std::uint32_t kExponentMask = 0;
template <>
inline constexpr std::uint32_t kExponentMask<Bf16> = 0x7f80;
template <>
inline constexpr std::uint32_t kExponentMask<Fp16> = 0x7c00;

/// 2^x by the special function unit: two units in the last place, subnormal results are zero.
__device__ __forceinline__ float fast_exp2(float x) {
#if RINGPROOF_CUDA_HOST
  return std::exp2(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// The fast weights of a row: exp(s - m) as 2^(s log2 e - m log2 e), one fused operation an element.
inline constexpr float kLog2E = 0x1.715476p+0F;

/// What a larger maximum does to a row: the factor of the past, and what is subtracted from now on.
struct Rescale {
  float alpha = 1, shift = 0;
};

__device__ __forceinline__ Rescale rescale(float m_before, float m) {
  if (is_minus_infinity(m)) return {1, 0};  // nothing seen yet
  return {fast_exp2((m_before - m) * kLog2E), m * kLog2E};
}

/// Zero for a score of minus infinity, whatever the shift.
__device__ __forceinline__ float weight(float s, float shift) {
  return fast_exp2(fmaf(s, kLog2E, -shift));
}

// exp, log and tanh with one rounding, as the scalar tier has them: through a wider type.
__device__ __forceinline__ float exact_exp(float x) {
#if RINGPROOF_CUDA_HOST
  return reference::Number<float>::exponential(x);
#else
  return static_cast<float>(exp(static_cast<double>(x)));
#endif
}

__device__ __forceinline__ float exact_log(float x) {
#if RINGPROOF_CUDA_HOST
  return reference::Number<float>::logarithm(x);
#else
  return static_cast<float>(log(static_cast<double>(x)));
#endif
}

__device__ __forceinline__ float exact_tanh(float x) {
#if RINGPROOF_CUDA_HOST
  return reference::Number<float>::hyperbolic_tangent(x);
#else
  return static_cast<float>(tanh(static_cast<double>(x)));
#endif
}

}  // namespace ringproof::cuda
