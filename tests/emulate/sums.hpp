// Sums of products as kernels form them: every order here is one that `any_order` allows, and the
// truncating step is the matrix unit that formula (3) of docs/contract.md bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/emulate/numerics.hpp"

namespace ringproof::emulate {

/// Products a[k] * b[k] at `place` on the tile grid.
template <class Real>
struct Products {
  std::vector<Real> a, b;           // [n]
  std::vector<std::int64_t> place;  // [n] ascending

  std::size_t size() const { return a.size(); }
  void clear() { a.clear(), b.clear(), place.clear(); }
  void add(Real x, Real y, std::int64_t at) { a.push_back(x), b.push_back(y), place.push_back(at); }
};

namespace detail {

/// One step of a truncating matrix unit: carry and products are aligned to the largest exponent and
/// cut
/// two bits below a 24-bit significand, added exactly, and the sum is cut to 24 bits.
template <class Real>
Real truncating_step(Real carry, const Products<Real>& terms, std::size_t first, std::size_t last) {
  constexpr int kExtraBits = 2;
  double largest = std::fabs(static_cast<double>(carry));
  for (std::size_t k = first; k < last; ++k)
    largest = std::fmax(largest, std::fabs(static_cast<double>(terms.a[k]) * terms.b[k]));
  if (largest == 0) return 0;
  const int grid = std::ilogb(largest) - 23 - kExtraBits;
  double sum = truncate(carry, grid);
  for (std::size_t k = first; k < last; ++k)
    sum += truncate(static_cast<double>(terms.a[k]) * terms.b[k], grid);
  return sum == 0 ? Real{0} : static_cast<Real>(truncate(sum, std::ilogb(sum) - 23));
}

template <class Real>
Real pairwise(const Products<Real>& terms, std::size_t first, std::size_t last) {
  if (last - first == 1) return terms.a[first] * terms.b[first];
  const std::size_t middle = first + (last - first) / 2;
  return pairwise(terms, first, middle) + pairwise(terms, middle, last);
}

template <class Real>
Real lanes(const Products<Real>& terms, std::size_t first, std::size_t last) {
  constexpr std::size_t kLanes = 8;
  Real lane[kLanes] = {};
  for (std::size_t k = first; k < last; ++k) lane[(k - first) % kLanes] += terms.a[k] * terms.b[k];
  for (std::size_t width = kLanes / 2; width > 0; width /= 2)
    for (std::size_t k = 0; k < width; ++k) lane[k] += lane[k + width];
  return lane[0];
}

template <class Real>
Real add_range(Sum order, int step, Real carry, const Products<Real>& terms, std::size_t first,
               std::size_t last) {
  if (first == last) return carry;
  switch (order) {
    case Sum::sequential:
      for (std::size_t k = first; k < last; ++k) carry += terms.a[k] * terms.b[k];
      return carry;
    case Sum::reversed:
      for (std::size_t k = last; k-- > first;) carry += terms.a[k] * terms.b[k];
      return carry;
    case Sum::fused:
      for (std::size_t k = first; k < last; ++k) carry = std::fma(terms.a[k], terms.b[k], carry);
      return carry;
    case Sum::pairwise:
      return carry + pairwise(terms, first, last);
    case Sum::lanes:
      return carry + lanes(terms, first, last);
    case Sum::truncating:
      break;
  }
  for (std::size_t begin = first, end = first; begin < last; begin = end) {
    while (end < last && terms.place[end] / step == terms.place[begin] / step) ++end;
    carry = truncating_step(carry, terms, begin, end);
  }
  return carry;
}

}  // namespace detail

/// carry + sum of the products. leaf > 0: terms of one leaf are summed from zero first.
template <class Real>
Real add_products(Sum order, int step, std::int64_t leaf, Real carry, const Products<Real>& terms) {
  if (leaf == 0) return detail::add_range(order, step, carry, terms, 0, terms.size());
  for (std::size_t begin = 0, end = 0; begin < terms.size(); begin = end) {
    while (end < terms.size() && terms.place[end] / leaf == terms.place[begin] / leaf) ++end;
    carry += detail::add_range(order, step, Real{0}, terms, begin, end);
  }
  return carry;
}

}  // namespace ringproof::emulate
