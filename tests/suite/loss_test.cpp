// Finite differences of the exact loss, against derivatives known in closed form.
#include <cmath>

#include "tests/suite/loss.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof;
using namespace ringproof::suite;

namespace {

/// One head, one query, two keys of widths 1: scores s_j = q k_j, weights p_j, values v_j.
Draft two_keys(double q, double k0, double k1) {
  Draft draft;
  draft.keys = 2;
  draft.spec.scale = 1;
  const auto f64 = oracle::DType::f64;
  draft.put("q", f64, {1, 1, 1, 1}, {q});
  draft.put("k", f64, {1, 1, 2, 1}, {k0, k1});
  draft.put("v", f64, {1, 1, 2, 1}, {3, -1});
  draft.put("dout", f64, {1, 1, 1, 1}, {2});
  draft.put("dlse", f64, {1, 1, 1, 1}, {0.5});
  draft.gradients = true;
  return draft;
}

void expect_near(const Slope& slope, double expected) {
  INFO(slope.low << " " << expected << " " << slope.high);
  const double few = 4 * std::ldexp(std::abs(expected) + 1, -53);
  CHECK(slope.low <= expected + few);
  CHECK(slope.high >= expected - few);
  CHECK(slope.high - slope.low < std::ldexp(1.0, -40));
}

}  // namespace

TEST_CASE("finite differences of the loss hold the derivatives of two keys") {
  const double q = 0.75, k0 = 1, k1 = -0.5;
  const double p0 = 1 / (1 + std::exp(q * (k1 - k0))), p1 = 1 - p0;
  const double out = 3 * p0 - p1, dout = 2, dlse = 0.5;
  const double ds0 = p0 * (dout * (3 - out) + dlse), ds1 = p1 * (dout * (-1 - out) + dlse);
  Loss loss(two_keys(q, k0, k1));
  expect_near(loss.slope("v", 0), p0 * dout);
  expect_near(loss.slope("v", 1), p1 * dout);
  expect_near(loss.slope("q", 0), ds0 * k0 + ds1 * k1);
  expect_near(loss.slope("k", 0), ds0 * q);
  expect_near(loss.slope("k", 1), ds1 * q);
}

TEST_CASE("a bias of minus infinity and a row that sees nothing have no slope") {
  Draft draft = two_keys(1, 1, 1);
  draft.put("bias", oracle::DType::f32, {1, 1, 1, 2}, {-HUGE_VAL, -HUGE_VAL});
  Loss loss(draft);
  for (const char* name : {"q", "k", "v", "bias"}) {
    CHECK(loss.slope(name, 0).low <= 0);
    CHECK(loss.slope(name, 0).high >= 0);
  }
}

TEST_CASE("low digits are dropped, and nothing else") {
  Draft draft = two_keys(1 + std::ldexp(1.0, -20), -0.5, 0.25);
  drop_low_digits(draft);
  CHECK(draft.table("q").values[0] == 1);
  CHECK(draft.table("k").values[0] == -0.5);
}
