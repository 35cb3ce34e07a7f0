// Bit patterns of binary64 and of the smaller formats. Private to dtype.cpp and decode.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "oracle/case/dtype.hpp"

namespace ringproof::oracle::bits {

constexpr std::array<Format, 6> kFormats{{
    {53, -1022, std::numeric_limits<double>::max(), true},
    {24, -126, 0x1.fffffep127, true},
    {11, -14, 65504.0, true},
    {8, -126, 0x1.fep127, true},
    {4, -6, 448.0, false},
    {3, -14, 57344.0, true},
}};

constexpr std::uint64_t kSignBit = 1ULL << 63;
constexpr std::uint64_t kInfinity = 0x7ffULL << 52;
constexpr std::uint64_t kQuietNaN = 0x7ff8ULL << 48;

constexpr double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

/// Bits of the nonnegative binary64 number m * 2^e; precondition: there is such a number.
constexpr std::uint64_t compose(std::uint64_t m, int e) {
  if (m == 0) return 0;
  const int top = std::bit_width(m) - 1 + e;  // exponent of the leading digit
  if (top < -1022) return e >= -1074 ? m << (e + 1074) : m >> -(e + 1074);
  const int shift = 53 - std::bit_width(m);
  const std::uint64_t aligned = shift >= 0 ? m << shift : m >> -shift;
  return (static_cast<std::uint64_t>(top + 1023) << 52) | (aligned & ((1ULL << 52) - 1));
}

/// Exponent bits of the encoding of a float type with a sign bit in front.
constexpr int exponent_bits(DType type, const Format& format) {
  return static_cast<int>(8 * size_of(type)) - format.digits;
}

}  // namespace ringproof::oracle::bits
