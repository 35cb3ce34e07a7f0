// bf16 and fp16 as bit patterns, to fp32 and back with one rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace ringproof::cuda {

inline float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_of_float(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;  // the hardware's NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float float_of_fp16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31U, fraction = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

inline std::uint16_t fp16_of_float(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return 0x7fff;
  if (size >= 0x477ff000U) return sign | 0x7c00U;  // from halfway beyond the largest number on
  if (size < 0x38800000U) {                        // below the normal numbers: count units of 2^-24
    const float units = std::bit_cast<float>(size) * 0x1p24F;  // exact
    const float rounded = (units + 0x1p23F) - 0x1p23F;         // to nearest even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(rounded));
  }
  const std::uint32_t rebased = size - (112U << 23);
  return static_cast<std::uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13));
}

}  // namespace ringproof::cuda
