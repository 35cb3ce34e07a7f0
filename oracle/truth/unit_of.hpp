// The place of the lowest bit of a number: what decides whether sums of products are exact, Lemma
// 6b of docs/double_double.md. Not the unit in the last place: trailing zeros do not count.
#pragma once

#include <bit>
#include <cstdint>

namespace ringproof::oracle {

/// Of numbers that are all zero: every power of two divides them, this is as good as any.
inline constexpr int kUnitOfZero = 400;

/// The largest e for which the finite number x is a multiple of 2^e.
inline int unit_of(double x) {
  constexpr std::uint64_t kHidden = 1ULL << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t fraction = bits & (kHidden - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0 && fraction == 0) return kUnitOfZero;
  if (exponent == 0) return std::countr_zero(fraction) - 1074;
  return exponent - 1075 + std::countr_zero(fraction | kHidden);
}

}  // namespace ringproof::oracle
