// Double-double arithmetic on single numbers, for what happens once a row or once an element: the
// same lemmas of docs/double_double.md as double_double-inl.hpp, whose vectors do the bulk.
#pragma once

#include <cmath>

#include "oracle/truth/error_bounds.hpp"

namespace ringproof::oracle {

/// The unevaluated sum hi + lo.
struct ScalarPair {
  double hi = 0, lo = 0;
};

/// Lemma 1: exact.
inline ScalarPair two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double a_part = sum - b_part;
  return {sum, (a - a_part) + (b - b_part)};
}
/// Lemma 3: exact, barring underflow.
inline ScalarPair two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}
/// Lemma 10: within 4 units of |x| + |y|.
inline ScalarPair add(ScalarPair x, ScalarPair y) {
  const ScalarPair sum = two_sum(x.hi, y.hi);
  return two_sum(sum.hi, sum.lo + (x.lo + y.lo));
}
/// Lemma 8: within 7 units of the product.
inline ScalarPair multiply(ScalarPair x, ScalarPair c) {
  const ScalarPair product = two_product(x.hi, c.hi);
  const double low = std::fma(x.hi, c.lo, std::fma(x.lo, c.hi, product.lo));
  return two_sum(product.hi, low);
}

}  // namespace ringproof::oracle
