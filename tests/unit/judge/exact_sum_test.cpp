// The exact sum against rational arithmetic: the nearest binary64, what is left, and every
// rounding.
#include "oracle/judge/exact_sum.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;
using Rational = boost::multiprecision::cpp_rational;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Rational total(const std::array<double, 4>& terms) {
  Rational sum = 0;
  for (const double term : terms) sum += Rational(term);
  return sum;
}

int sign(const Rational& x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// Neighbour of a number of the type, by trying binary64 numbers beyond it.
double next_above(DType type, double x) { return round_up(type, std::nextafter(x, kInfinity)); }

/// Terms whose sums hit ties, near-ties and cancellation: few digits, exponents that meet.
std::array<double, 4> drawn_terms(std::mt19937_64& generator) {
  std::uniform_int_distribution<int> exponent(-60, 4), digits(0, 3), kind(0, 3);
  std::array<double, 4> terms{};
  for (double& term : terms) {
    switch (kind(generator)) {
      case 0:
        term = 0;
        break;
      case 1:
        term = std::ldexp(digits(generator) - 1.0, exponent(generator));
        break;
      case 2:
        term = std::ldexp(1.0 + std::ldexp(1.0, -digits(generator) * 4), exponent(generator));
        break;
      default:
        term = std::ldexp(std::ldexp(static_cast<double>(generator() >> 11), -53) - 0.5,
                          exponent(generator) / 8);
    }
    if (generator() % 2 == 0) term = -term;
  }
  return terms;
}

/// The sum is the nearest binary64 number and the sign of what is left, in rational arithmetic.
void require_nearest(const std::array<double, 4>& terms) {
  const Rational sum = total(terms);
  const ExactReal x = exact_sum(terms);
  INFO(x.value << " rest " << x.rest);
  const Rational error = sum - Rational(x.value);
  REQUIRE(sign(error) == x.rest);
  const Rational above = Rational(std::nextafter(x.value, kInfinity)) - sum;
  const Rational below = sum - Rational(std::nextafter(x.value, -kInfinity));
  REQUIRE(abs(error) <= above);
  REQUIRE(abs(error) <= below);
}

}  // namespace

TEST_CASE("the exact sum is the nearest binary64 number and the sign of what is left") {
  std::mt19937_64 generator(1);
  for (int n = 0; n < 20000; ++n) require_nearest(drawn_terms(generator));
}

TEST_CASE("a sum half way between two binary64 numbers is decided by what lies below") {
  // Drawn terms hardly ever leave a part below an exact half: 1 and its odd neighbour do it here.
  for (const double start : {1.0, 1.0 + 0x1p-52, -1.0, -1.0 - 0x1p-52})
    for (const double half : {0x1p-53, -0x1p-53, -0x1p-54})
      for (const double below : {0.0, 0x1p-120, -0x1p-120, 0x1p-1000, -0x1p-1000}) {
        INFO(start << " " << half << " " << below);
        require_nearest({start, half, below, 0});
        require_nearest({below, 0, half, start});
        require_nearest({start, half, 0x1p-110, below});
      }
}

TEST_CASE("terms near the largest number may cancel in any order") {
  std::array<double, 4> terms{-0x1.8p1023, -0x1p1023, 0x1.8p1023, 0x1.8p1023};
  do {
    const ExactReal x = exact_sum(terms);
    CHECK(x.value == 0x1p1022);
    CHECK(x.rest == 0);
  } while (std::next_permutation(terms.begin(), terms.end()));
}

TEST_CASE("an exact sum is rounded to every type as the real number is") {
  std::mt19937_64 generator(2);
  const std::vector<DType> types{DType::f64,  DType::f32,     DType::f16,
                                 DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  for (int n = 0; n < 5000; ++n) {
    const auto terms = drawn_terms(generator);
    const Rational sum = total(terms);
    const ExactReal x = exact_sum(terms);
    for (const DType type : types) {
      INFO(name(type) << " " << x.value << " rest " << x.rest);
      const double low = down(type, x), high = up(type, x), close = nearest(type, x);
      REQUIRE(Rational(low) <= sum);
      REQUIRE(Rational(high) >= sum);
      REQUIRE((low == high || next_above(type, low) == high));
      REQUIRE((Rational(low) == sum) == (low == high));
      REQUIRE((close == low || close == high));
      const Rational to_low = sum - Rational(low), to_high = Rational(high) - sum;
      if (to_low < to_high) REQUIRE(close == low);
      if (to_low > to_high) REQUIRE(close == high);
      if (to_low == to_high && low != high) {
        // Ties to even: the neighbour whose own neighbours are twice as far apart in digits.
        const double step = high - low;
        REQUIRE(std::fmod(close / step, 2.0) == 0.0);
      }
      REQUIRE(to_zero(type, x) == (sum < 0 ? high : low));
    }
  }
}

TEST_CASE(
    "sums beyond the largest number round to infinity or to the largest number, by direction") {
  const double largest = std::numeric_limits<double>::max();
  const ExactReal over = exact_sum({largest, largest, 0, 0});
  CHECK(nearest(DType::f64, over) == kInfinity);
  CHECK(down(DType::f64, over) == largest);
  CHECK(to_zero(DType::f64, over) == largest);
  CHECK(up(DType::f64, exact_sum({-largest, -largest, 0, 0})) == -largest);
  CHECK(nearest(DType::f64, exact_sum({largest, 0x1p969, 0, 0})) == largest);
  CHECK(nearest(DType::f64, exact_sum({largest, 0x1p970, 0, 0})) == kInfinity);
  CHECK(nearest(DType::f16, exact_sum({65504.0, 15.0, 0, 0})) == 65504.0);
  CHECK(nearest(DType::f16, exact_sum({65504.0, 16.0, -0x1p-70, 0})) == 65504.0);
  CHECK(nearest(DType::f16, exact_sum({65504.0, 16.0, 0, 0})) == kInfinity);
  CHECK(nearest(DType::f8_e4m3, exact_sum({1000.0, 0, 0, 0})) == kInfinity);
  CHECK(down(DType::f8_e4m3, exact_sum({1000.0, 0, 0, 0})) == 448.0);
  CHECK(up(DType::f8_e4m3, exact_sum({-1000.0, 0, 0, 0})) == -448.0);
}

TEST_CASE("comparisons see what is below the last digit") {
  const ExactReal above = exact_sum({1.0, 0x1p-100, 0, 0});
  CHECK(greater(above, 1.0));
  CHECK_FALSE(less(above, 1.0));
  CHECK(less(exact_sum({1.0, -0x1p-200, 0, 0}), 1.0));
  CHECK_FALSE(less(exact_sum({1.0, 0, 0, 0}), 1.0));
}
