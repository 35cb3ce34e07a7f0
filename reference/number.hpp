// What attention asks of a number type beyond + - * / and <. Nothing here knows about attention.
// The weight of a score s is exponential(s): e^s for the floating types and for any type that
// brings its own exp. A type on which e^s is not computable specialises Number with another base;
// every statement of this folder holds in every base (the tests use exact rationals with base 2).
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace ringproof::reference {

using Index = std::int64_t;

template <class Real>
struct Number {
  static Real minus_infinity() { return -std::numeric_limits<Real>::infinity(); }
  static Real not_a_number() { return std::numeric_limits<Real>::quiet_NaN(); }

  /// Weight of a score. float goes through double: one rounding, whatever the C library's expf
  /// does.
  static Real exponential(const Real& x) {
    using std::exp;
    if constexpr (std::same_as<Real, float>) {
      return static_cast<float>(exp(static_cast<double>(x)));
    } else {
      return exp(x);
    }
  }

  /// Inverse of exponential().
  static Real logarithm(const Real& x) {
    using std::log;
    if constexpr (std::same_as<Real, float>) {
      return static_cast<float>(log(static_cast<double>(x)));
    } else {
      return log(x);
    }
  }

  /// tanh of C libraries errs by up to 2.3 units in the last place, so the wider type is used here
  /// too.
  static Real hyperbolic_tangent(const Real& x) {
    using std::tanh;
    if constexpr (std::floating_point<Real>) {
      return static_cast<Real>(tanh(static_cast<long double>(x)));
    } else {
      return tanh(x);
    }
  }

  /// 1 / sqrt(n), the scale of a problem that names none; one rounding for float and double.
  static Real inverse_square_root(Index n) {
    using std::sqrt;
    if constexpr (std::floating_point<Real>) {
      return static_cast<Real>(1 / sqrt(static_cast<long double>(n)));
    } else {
      return Real(1) / sqrt(Real(n));
    }
  }
};

/// The score of a key that is not seen.
template <class Real>
bool is_minus_infinity(const Real& score) {
  return score == Number<Real>::minus_infinity();
}

template <class Real>
Real larger(const Real& a, const Real& b) {
  return a < b ? b : a;
}

}  // namespace ringproof::reference
