// A number type without rounding: rationals, minus infinity, and logarithms to base 2 of rationals.
// With integer scores and weights 2^s everything the reference computes is exact, so that "equal in
// real arithmetic" can be tested as equality. An operation whose result would not be exact, and any
// (-inf) - (-inf), throws: a computation that ends has therefore met neither.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <ostream>
#include <stdexcept>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::test {

using Rational = boost::multiprecision::cpp_rational;

/// The number value + log2(factor), or minus infinity.
struct Exact {
  Rational value = 0;
  Rational factor = 1;  // positive
  bool infinite = false;

  Exact() = default;
  template <std::integral Integer>
  Exact(Integer number) : value(number) {}
  explicit Exact(Rational number) : value(std::move(number)) {}

  static Exact minus_infinity() {
    Exact result;
    result.infinite = true;
    return result;
  }
  /// Throws unless the number is a finite rational.
  const Rational& rational() const {
    if (infinite || factor != 1) throw std::domain_error("exact arithmetic: not a rational");
    return value;
  }
};

inline Exact operator+(const Exact& a, const Exact& b) {
  if (a.infinite || b.infinite) return Exact::minus_infinity();
  Exact sum(Rational(a.value + b.value));
  sum.factor = a.factor * b.factor;
  return sum;
}

inline Exact operator-(const Exact& a, const Exact& b) {
  if (b.infinite) throw std::domain_error("exact arithmetic: x - (-inf)");
  if (a.infinite) return a;
  Exact difference(Rational(a.value - b.value));
  difference.factor = a.factor / b.factor;
  return difference;
}

inline Exact operator*(const Exact& a, const Exact& b) {
  return Exact(Rational(a.rational() * b.rational()));
}
inline Exact operator/(const Exact& a, const Exact& b) {
  if (b.rational() == 0) throw std::domain_error("exact arithmetic: x / 0");
  return Exact(Rational(a.rational() / b.rational()));
}

/// 2^n for an integer n.
inline Rational power_of_two(const Rational& n) {
  if (denominator(n) != 1) throw std::domain_error("exact arithmetic: 2^(no integer)");
  const long long exponent = static_cast<long long>(numerator(n));
  const boost::multiprecision::cpp_int power = boost::multiprecision::cpp_int(1)
                                               << static_cast<unsigned>(std::abs(exponent));
  return exponent < 0 ? Rational(1, power) : Rational(power);
}

inline bool operator==(const Exact& a, const Exact& b) {
  if (a.infinite || b.infinite) return a.infinite == b.infinite;
  if (a.factor == 1 && b.factor == 1) return a.value == b.value;
  const Rational difference = a.value - b.value;
  return denominator(difference) == 1 && power_of_two(difference) * a.factor == b.factor;
}

inline bool operator<(const Exact& a, const Exact& b) {
  if (a.infinite || b.infinite) return a.infinite && !b.infinite;
  if (a.factor == 1 && b.factor == 1) return a.value < b.value;
  return power_of_two(a.value - b.value) * a.factor < b.factor;
}

inline std::ostream& operator<<(std::ostream& stream, const Exact& number) {
  if (number.infinite) return stream << "-inf";
  stream << number.value;
  return number.factor == 1 ? stream : stream << " + log2(" << number.factor << ")";
}

}  // namespace ringproof::test

/// Weights are powers of two; the logarithm is the one to base 2.
template <>
struct ringproof::reference::Number<ringproof::test::Exact> {
  using Exact = ringproof::test::Exact;
  static Exact minus_infinity() { return Exact::minus_infinity(); }
  static Exact exponential(const Exact& x) {
    if (x.infinite) return Exact(0);
    return Exact(ringproof::test::Rational(ringproof::test::power_of_two(x.value) * x.factor));
  }
  static Exact logarithm(const Exact& x) {
    if (!(Exact(0) < x)) throw std::domain_error("exact arithmetic: log of no positive number");
    Exact result(0);
    result.factor = x.rational();
    return result;
  }
  static Exact hyperbolic_tangent(const Exact&) { throw std::domain_error("tanh is not exact"); }
  static Exact not_a_number() { throw std::domain_error("exact arithmetic has no NaN"); }
};
