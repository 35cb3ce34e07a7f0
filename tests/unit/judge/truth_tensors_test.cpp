// The truth as tensors: intervals that hold the answer, and rounding only where it is decided.
#include "oracle/judge/truth_tensors.hpp"

#include <cmath>
#include <limits>

#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("intervals are narrow, hold each other at more digits, and round to one answer") {
  const CaseBuilder builder = random_case(DType::f32, {.batches = 2, .queries = 20});
  const Case input = builder.assemble();
  const TruthTensors fast = truth_tensors(input.problem, LseBase::e, 0, {});
  const TruthTensors digits = truth_tensors(input.problem, LseBase::e, 200, {});
  REQUIRE(fast.out_lo.size() == 2 * 2 * 20 * 3);
  REQUIRE(fast.lse_lo.size() == 2 * 2 * 20);
  for (std::size_t n = 0; n < fast.out_lo.size(); ++n) {
    CHECK(fast.out_lo[n] <= digits.out_hi[n]);
    CHECK(digits.out_lo[n] <= fast.out_hi[n]);
    const double two_above = std::nextafter(std::nextafter(fast.out_lo[n], 9), 9);
    CHECK(fast.out_hi[n] <= two_above);
  }
  const auto rounded = decided(DType::f32, fast.out_lo, fast.out_hi);
  for (std::size_t n = 0; n < fast.out_lo.size(); ++n) {
    CHECK(decode(DType::f32, rounded.data() + 4 * n) == round_nearest(DType::f32, fast.out_lo[n]));
  }
}

TEST_CASE("an interval across a midpoint is not decided") {
  const double middle = 1 + 0x1p-24;
  const auto rounded =
      decided(DType::f32, {std::nextafter(middle, 0), 1.0}, {std::nextafter(middle, 2), 1.0});
  CHECK(std::isnan(decode(DType::f32, rounded.data())));
  CHECK(decode(DType::f32, rounded.data() + 4) == 1.0);
}

TEST_CASE("the LSE in base 2 is the natural one times log2 of e") {
  const CaseBuilder builder = random_case(DType::f32);
  const Case input = builder.assemble();
  const TruthTensors natural = truth_tensors(input.problem, LseBase::e, 0, {});
  const TruthTensors binary = truth_tensors(input.problem, LseBase::two, 0, {});
  for (std::size_t n = 0; n < natural.lse_lo.size(); ++n) {
    CHECK(std::abs(binary.lse_lo[n] - natural.lse_lo[n] * 1.4426950408889634) <=
          0x1p-50 * std::abs(binary.lse_lo[n]));
    CHECK(binary.lse_lo[n] <= binary.lse_hi[n]);
  }
}

TEST_CASE("log2 of e times a certified number keeps it certified") {
  // 40 digits of log2(e) from a table: 1.4426950408889634073599246810018921374266
  const Certified one = in_base_two({1, 0, 0});
  CHECK(one.hi == 0x1.71547652b82fep+0);
  CHECK(std::abs(one.lo - 0x1.777d0ffda0d24p-56) <= one.radius);
  CHECK(one.radius < 0x1p-96);
  CHECK(in_base_two({0, 0, 0}).radius == 0);
  CHECK(in_base_two({3, 0, 0x1p-66}).radius >= 0x1p-66 * 1.4426950408889634);
}

TEST_CASE("empty rows and rows that see NaN are written as what they are") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 4, .keys = 2});
  builder.spec = R"({"version": 1, "causal": "bottom_right"})";
  set_value(builder, "v", 3, std::numeric_limits<double>::quiet_NaN());  // of the last key
  const Case input = builder.assemble();
  const TruthTensors truth = truth_tensors(input.problem, LseBase::e, 0, {});
  CHECK(truth.out_lo[0] == 0);
  CHECK(truth.out_hi[0] == 0);
  CHECK(truth.lse_hi[0] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(truth.out_lo[3 * 3]));
  CHECK(std::isfinite(truth.out_lo[2 * 3]));
}
