#include "oracle/judge/accept.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "oracle/judge/exact_sum.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_bound(double bound) {
  if (!(bound >= 0)) throw std::logic_error("the derived bound is not a number >= 0");
}

double smallest_normal(DType type) { return std::ldexp(1.0, format_of(type).min_exponent); }

enum class Side { low, high };

/// One end of (35): the smallest or largest value the storage may hold for an exact x.
double box_end(Side side, const ExactReal& x, const OutputRule& rule) {
  const bool low = side == Side::low;
  // Compared as a real number: the binary64 numbers on the inner side of x.
  if (!rule.rounds) return low ? up(DType::f64, x) : down(DType::f64, x);
  switch (rule.round) {
    case RoundMode::rn:
      return nearest(rule.dtype, x);
    case RoundMode::rz:
      return to_zero(rule.dtype, x);
    case RoundMode::faithful:
      return low ? down(rule.dtype, x) : up(rule.dtype, x);
  }
  throw std::logic_error("unknown rounding mode");
}

Box box_of(const ExactReal& low, const ExactReal& high, const OutputRule& rule) {
  Box box{box_end(Side::low, low, rule), box_end(Side::high, high, rule)};
  if (!rule.rounds) return box;
  if (rule.overflow == Overflow::saturate) {
    const double largest = format_of(rule.dtype).largest;
    box.low = std::clamp(box.low, -largest, largest);
    box.high = std::clamp(box.high, -largest, largest);
  }
  if (rule.flush_to_zero) {
    // A result below the smallest normal number, before or after rounding, may be stored as zero.
    const double normal = smallest_normal(rule.dtype);
    if (less(low, normal) && greater(high, -normal)) {
      box.low = std::min(box.low, 0.0);
      box.high = std::max(box.high, 0.0);
    }
  }
  return box;
}

/// A type without infinity stores an overflow as NaN, so NaN is accepted where the box is not
/// finite.
bool contains(const Box& box, double answer, const OutputRule& rule) {
  if (!std::isnan(answer)) return box.contains(answer);
  return rule.rounds && !format_of(rule.dtype).has_infinity &&
         (std::isinf(box.low) || std::isinf(box.high));
}

/// Distance between neighbours of the type at magnitude x.
double spacing(DType type, double x) {
  const Format& format = format_of(type);
  const double magnitude = std::min(std::abs(x), format.largest);
  const int exponent = magnitude == 0 ? format.min_exponent : std::ilogb(magnitude);
  return std::ldexp(1.0, std::max(exponent, format.min_exponent) - format.digits + 1);
}

}  // namespace

Box wide_box(const Certified& exact, double bound, const OutputRule& rule) {
  require_bound(bound);
  if (std::isinf(bound) || std::isinf(exact.radius)) return {-kInfinity, kInfinity};
  return box_of(exact_sum({exact.hi, exact.lo, -bound, -exact.radius}),
                exact_sum({exact.hi, exact.lo, bound, exact.radius}), rule);
}

Box narrow_box(const Certified& exact, double bound, const OutputRule& rule) {
  require_bound(bound);
  if (std::isinf(bound)) return {-kInfinity, kInfinity};
  if (std::isinf(exact.radius)) return {kInfinity, -kInfinity};
  return box_of(exact_sum({exact.hi, exact.lo, -bound, exact.radius}),
                exact_sum({exact.hi, exact.lo, bound, -exact.radius}), rule);
}

Decision accept(double answer, const Certified& exact, double bound, const OutputRule& rule) {
  require_bound(bound);
  if (std::isinf(bound)) return Decision::pass;
  // Nearly always the answer is clearly inside even without its own rounding: four roundings of
  // 2^-53 are covered by the factor, and every map of (35) leaves a number of the type where it is.
  const double used = std::abs(answer - exact.hi) + std::abs(exact.lo) + exact.radius;
  if (used <= bound * (1 - 0x1p-50)) return Decision::pass;
  if (contains(narrow_box(exact, bound, rule), answer, rule)) return Decision::pass;
  if (contains(wide_box(exact, bound, rule), answer, rule)) return Decision::unsure;
  return std::isinf(exact.radius) ? Decision::unsure : Decision::fail;
}

double rounding_step(const OutputRule& rule, double magnitude) {
  if (!rule.rounds) return 0;
  const double step = spacing(rule.dtype, magnitude);
  return rule.round == RoundMode::rn ? step / 2 : step;
}

double error_over_bound(double answer, const Certified& exact, double bound,
                        const OutputRule& rule) {
  if (answer == exact.hi && exact.lo == 0) return 0;
  const double error = std::abs((answer - exact.hi) - exact.lo);
  if (!(error < kInfinity)) return kInfinity;
  const double reach = std::abs(exact.hi) + std::abs(exact.lo) + bound + exact.radius;
  double allowed = bound + exact.radius + rounding_step(rule, reach);
  if (rule.rounds && rule.flush_to_zero && reach - 2 * allowed < smallest_normal(rule.dtype)) {
    allowed = std::max(allowed, smallest_normal(rule.dtype));
  }
  return allowed > 0 ? error / allowed : kInfinity;
}

}  // namespace ringproof::oracle
