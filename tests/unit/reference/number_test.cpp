// Number types: each rounds where it says it does, and several of them run the whole ring.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/mpfi.hpp>

#include "reference/dense.hpp"
#include "reference/ring.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Description;
using Wide = boost::multiprecision::cpp_bin_float_100;
using Interval = boost::multiprecision::mpfi_float_100;

namespace {

/// Is `rounded` within `units` units of roundoff 2^-digits of the exact value, relatively?
template <class Real>
bool within(Real rounded, const Wide& exact, int units) {
  const Wide unit = ldexp(Wide(units), -std::numeric_limits<Real>::digits);
  return abs(Wide(rounded) - exact) <= unit * abs(exact);
}

}  // namespace

TEST_CASE("C19: the default scale 1/sqrt(D) errs by at most one rounding, for every D <= 4096") {
  for (Index D = 1; D <= 4096; ++D) {
    const Wide exact = 1 / sqrt(Wide(D));
    CHECK(within(Number<double>::inverse_square_root(D), exact, 1));
    CHECK(within(Number<float>::inverse_square_root(D), exact, 1));
  }
}

TEST_CASE("C19: exp, log and tanh of float err by little more than one rounding") {
  // Their declared errors are 2^-23 and 2^-22: two and four units of 2^-24.
  for (int n = -2000; n <= 2000; ++n) {
    const float x = static_cast<float>(n) * 0.037f;
    if (n > -2000 && x > -87) CHECK(within(Number<float>::exponential(x), exp(Wide(x)), 2));
    CHECK(within(Number<float>::hyperbolic_tangent(x), tanh(Wide(x)), 2));
    if (x > 0) CHECK(within(Number<float>::logarithm(x), log(Wide(x)), 2));
    CHECK(within(Number<double>::hyperbolic_tangent(x), tanh(Wide(x)), 2));
  }
  CHECK(Number<float>::exponential(0.0f) == 1.0f);
  CHECK(Number<double>::exponential(0.0) == 1.0);
}

TEST_CASE("C19: the ring on intervals encloses the dense answer of a wide binary float") {
  test::property("dense of 100 digits lies in the ring's intervals", [](Description description) {
    description.scales = false;
    const auto wide = test::build<Wide>(description);
    const auto interval = test::build<Interval>(description);
    const Answer<Wide> dense = dense_attention(wide.problem);
    Trace trace;
    const auto ring =
        ring_attention(interval.problem, RingPlan{3, Layout::striped, Direction::up}, trace);
    // The dense answer errs itself: its last ten digits are not compared.
    const Wide slack = ldexp(Wide(1), -300);
    RC_ASSERT(ring.out.size() == dense.out.size());
    for (std::size_t n = 0; n < dense.out.size(); ++n) {
      RC_ASSERT(Wide(lower(ring.out[n]).str()) <= dense.out[n] + slack);
      RC_ASSERT(Wide(upper(ring.out[n]).str()) >= dense.out[n] - slack);
      // And they say something: no interval is wider than 2^-250.
      RC_ASSERT(Wide(width(ring.out[n]).str()) <= ldexp(Wide(1), -250));
    }
    for (std::size_t n = 0; n < dense.lse.size(); ++n) {
      if (is_minus_infinity(dense.lse[n])) {
        RC_ASSERT(is_minus_infinity(ring.lse[n]));
        continue;
      }
      RC_ASSERT(Wide(lower(ring.lse[n]).str()) <= dense.lse[n] + slack);
      RC_ASSERT(Wide(upper(ring.lse[n]).str()) >= dense.lse[n] - slack);
    }
  });
}
