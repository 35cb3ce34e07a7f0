// A number type on which attention is exact: weights are powers of two, 2^s in place of e^s. With
// integer scores and small integer values every sum is a multiple of a power of two that binary64
// holds without rounding, so that two ways to the same sums agree in every bit, or one is wrong.
// All statements of docs/math.md hold in every base (reference/number.hpp says why that is enough).
// Not exact: the one division at the end, and the logarithm; both take equal numbers to equal
// numbers.
#pragma once

#include <cmath>

#include "reference/number.hpp"

namespace ringproof::tutorials {

/// The weight of a score, for exercises that work on plain doubles.
inline double weight(double score) { return std::exp2(score); }

struct Exact {
  double x = 0;

  Exact() = default;
  explicit constexpr Exact(double value) : x(value) {}

  friend Exact operator+(Exact a, Exact b) { return Exact(a.x + b.x); }
  friend Exact operator-(Exact a, Exact b) { return Exact(a.x - b.x); }
  friend Exact operator*(Exact a, Exact b) { return Exact(a.x * b.x); }
  friend Exact operator/(Exact a, Exact b) { return Exact(a.x / b.x); }
  friend bool operator<(Exact a, Exact b) { return a.x < b.x; }
  friend bool operator==(Exact a, Exact b) { return a.x == b.x; }
};

}  // namespace ringproof::tutorials

template <>
struct ringproof::reference::Number<ringproof::tutorials::Exact> {
  using Exact = tutorials::Exact;
  static Exact minus_infinity() { return Exact(Number<double>::minus_infinity()); }
  static Exact not_a_number() { return Exact(Number<double>::not_a_number()); }
  static Exact exponential(Exact score) { return Exact(std::exp2(score.x)); }
  static Exact logarithm(Exact weight) { return Exact(std::log2(weight.x)); }
  static Exact hyperbolic_tangent(Exact x) { return Exact(std::tanh(x.x)); }
  static Exact inverse_square_root(Index n) {
    return Exact(Number<double>::inverse_square_root(n));
  }
};
