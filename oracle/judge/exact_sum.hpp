// The exact sum of a few binary64 numbers, and its correctly rounded value in any storage type.
// It is what lets the acceptance rule (35) flip exactly at the bound: an interval end o + lo - e -
// r is never rounded before it is rounded to the output type, whatever the processor's rounding
// mode allows.
#pragma once

#include <array>

#include "oracle/case/dtype.hpp"

namespace ringproof::oracle {

/// A real number x as its nearest binary64 value and the sign of what is left: x = value + rest *
/// tiny, where "tiny" is positive and smaller than any distance from `value` to another binary64
/// midpoint.
struct ExactReal {
  double value = 0;
  int rest = 0;  // -1, 0, 1
};

/// The sum of four finite numbers, exactly; with a term beyond 2^1000, to within 2^-1060.
ExactReal exact_sum(const std::array<double, 4>& terms);  // [4]

/// x < y, for a binary64 y.
bool less(const ExactReal& x, double y);
/// x > y, for a binary64 y.
bool greater(const ExactReal& x, double y);

/// x rounded to a storage type: to nearest (ties to even), down, up, to zero. Overflow is an
/// infinity of the right sign where the direction leads past the largest number, whether or not the
/// type has one.
double nearest(DType, const ExactReal& x);
double down(DType, const ExactReal& x);
double up(DType, const ExactReal& x);
double to_zero(DType, const ExactReal& x);

}  // namespace ringproof::oracle
