#include "oracle/judge/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// a + b = sum + error exactly, for any order of magnitudes (Knuth).
struct TwoSum {
  double sum, error;
};
TwoSum two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

int sign(double x) { return (x > 0) - (x < 0); }

/// Non-overlapping parts of the sum, largest first; zeros are left out of the way at the end.
std::array<double, 4> expansion(const std::array<double, 4>& terms) {
  std::array<double, 4> parts{};  // increasing magnitude while it grows (Shewchuk)
  for (int n = 0; n < 4; ++n) {
    double carry = terms[n];
    for (int i = 0; i < n; ++i) {
      const TwoSum step = two_sum(carry, parts[i]);
      parts[i] = step.error;
      carry = step.sum;
    }
    parts[n] = carry;
  }
  // One sweep from the top gathers what can be gathered, so that parts[0] is within one unit of the
  // sum.
  std::array<double, 4> packed{};
  int count = 0;
  double top = parts[3];
  for (int i = 2; i >= 0; --i) {
    const TwoSum step = two_sum(top, parts[i]);
    if (step.error == 0) {
      top = step.sum;
      continue;
    }
    packed[count++] = step.sum;
    top = step.error;
  }
  packed[count] = top;
  return packed;
}

ExactReal round_expansion(const std::array<double, 4>& parts) {
  const TwoSum head = two_sum(parts[0], parts[1]);
  const TwoSum tail = two_sum(head.error, parts[2]);
  const double below = tail.error + parts[3];
  const double value = head.sum, rest = tail.sum;
  if (rest == 0) return {value, sign(below)};
  // `rest` may be exactly half the way to a neighbour; what lies below it then decides.
  const double neighbour = std::nextafter(value, rest > 0 ? kInfinity : -kInfinity);
  const double half = (neighbour - value) / 2;
  const bool odd = (std::bit_cast<std::uint64_t>(value) & 1) != 0;
  const bool to_neighbour = std::abs(rest) > std::abs(half) ||
                            (rest == half && (below == 0 ? odd : sign(below) == sign(rest)));
  if (to_neighbour) return {neighbour, -sign(rest)};
  return {value, sign(rest)};
}

/// Of the two binary64 numbers around x the one with an odd last digit: rounding it to a type at
/// least two digits narrower gives what rounding x would give, in every direction (Boldo and
/// Melquiond).
double to_odd(const ExactReal& x) {
  if (x.rest == 0 || (std::bit_cast<std::uint64_t>(x.value) & 1) != 0) return x.value;
  return std::nextafter(x.value, x.rest > 0 ? kInfinity : -kInfinity);
}

/// A type without infinity answers overflow with NaN; an interval end wants its direction.
double overflow_as_infinity(double rounded, double from) {
  return std::isnan(rounded) ? std::copysign(kInfinity, from) : rounded;
}

}  // namespace

ExactReal exact_sum(const std::array<double, 4>& terms) {
  double largest = 0;
  for (const double term : terms) largest = std::max(largest, std::abs(term));
  if (largest <= 0x1p1000) return round_expansion(expansion(terms));
  std::array<double, 4> scaled = terms;  // so that no partial sum overflows
  for (double& term : scaled) term *= 0x1p-10;
  const ExactReal sum = round_expansion(expansion(scaled));
  const double value = sum.value * 0x1p10;
  return {value, std::isinf(value) ? -sign(value) : sum.rest};
}

bool less(const ExactReal& x, double y) { return x.value < y || (x.value == y && x.rest < 0); }
bool greater(const ExactReal& x, double y) { return x.value > y || (x.value == y && x.rest > 0); }

double nearest(DType type, const ExactReal& x) {
  if (type == DType::f64) return x.value;
  return overflow_as_infinity(round_nearest(type, to_odd(x)), x.value);
}

double down(DType type, const ExactReal& x) {
  const double below = x.rest < 0 ? std::nextafter(x.value, -kInfinity) : x.value;
  return overflow_as_infinity(round_down(type, below), x.value);
}

double up(DType type, const ExactReal& x) {
  const double above = x.rest > 0 ? std::nextafter(x.value, kInfinity) : x.value;
  return overflow_as_infinity(round_up(type, above), x.value);
}

double to_zero(DType type, const ExactReal& x) {
  const bool negative = x.value < 0 || (x.value == 0 && x.rest < 0);
  const double end = negative ? up(type, x) : down(type, x);
  const double largest = format_of(type).largest;
  return std::isinf(end) ? std::copysign(largest, end) : end;
}

}  // namespace ringproof::oracle
