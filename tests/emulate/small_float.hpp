// The narrow formats a kernel casts to, by their definition: significand digits and smallest normal
// exponent. Written anew here: the judge's own conversions are among the things under test.
#pragma once

#include <cmath>
#include <cstdint>

namespace ringproof::emulate {

struct SmallFloat {
  int digits = 0;  // 0: no cast at all
  int min_exponent = 0;
  bool to_zero = false;
  explicit operator bool() const { return digits > 0; }
};

inline constexpr SmallFloat kNone{};
inline constexpr SmallFloat kTf32{11, -126, false};
inline constexpr SmallFloat kTf32ToZero{11, -126, true};
inline constexpr SmallFloat kBf16{8, -126, false};
inline constexpr SmallFloat kFp16{11, -14, false};
inline constexpr SmallFloat kE4m3{4, -6, false};
inline constexpr SmallFloat kFp32{24, -126, false};

/// The number of the format that rounding gives; gradual underflow, ties to even. The callers stay
/// below
/// the largest number of the format.
inline double cast(double x, const SmallFloat& format) {
  if (!format || x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), format.min_exponent) - format.digits + 1;
  const double scaled = std::ldexp(x, -exponent);
  return std::ldexp(format.to_zero ? std::trunc(scaled) : std::nearbyint(scaled), exponent);
}

/// x with everything below 2^exponent cut off.
inline double truncate(double x, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(x, -exponent)), exponent);
}

}  // namespace ringproof::emulate
