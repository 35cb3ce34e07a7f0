// Formula (35): the verdict of one element flips exactly at the bound, in every output type and
// mode.
#include "oracle/judge/accept.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/property.hpp"

using namespace ringproof::oracle;
using Rational = boost::multiprecision::cpp_rational;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double next_above(DType type, double x) { return round_up(type, std::nextafter(x, kInfinity)); }
double next_below(DType type, double x) { return round_down(type, std::nextafter(x, -kInfinity)); }

const std::vector<DType> kTypes{DType::f64,  DType::f32,     DType::f16,
                                DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

double uniform(std::mt19937_64& generator, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(generator);
}

}  // namespace

TEST_CASE("an exact result is stored as its rounding mode says, on either side of zero") {
  const double below = 1, above = 1 + 0x1p-7, exact = below + 0.75 * 0x1p-7;  // neighbours in bf16
  const auto box = [&](RoundMode round, double x) {
    return wide_box({x, 0, 0}, 0, {.dtype = DType::bf16, .round = round});
  };
  const auto holds = [](const Box& found, double low, double high) {
    return found.low == low && found.high == high;
  };
  CHECK(holds(box(RoundMode::rn, exact), above, above));
  CHECK(holds(box(RoundMode::rn, -exact), -above, -above));
  CHECK(holds(box(RoundMode::rz, exact), below, below));
  CHECK(holds(box(RoundMode::rz, -exact), -below, -below));
  CHECK(holds(box(RoundMode::faithful, exact), below, above));
  CHECK(holds(box(RoundMode::faithful, -exact), -above, -below));
}

TEST_CASE("one number inside the box passes and the next one outside fails") {
  std::mt19937_64 generator(7);
  for (const DType type : kTypes) {
    for (const RoundMode round : {RoundMode::rn, RoundMode::rz, RoundMode::faithful}) {
      const OutputRule rule{.dtype = type, .round = round};
      for (int n = 0; n < 300; ++n) {
        const double hi = uniform(generator, -3, 3);
        const Certified exact{hi, hi * uniform(generator, -0x1p-54, 0x1p-54), 0};
        const double bound = std::exp2(uniform(generator, -60, 0));
        const Box box = wide_box(exact, bound, rule);
        INFO(name(type) << " hi " << hi << " bound " << bound);
        REQUIRE(accept(box.low, exact, bound, rule) == Decision::pass);
        REQUIRE(accept(box.high, exact, bound, rule) == Decision::pass);
        REQUIRE(accept(next_above(type, box.high), exact, bound, rule) == Decision::fail);
        REQUIRE(accept(next_below(type, box.low), exact, bound, rule) == Decision::fail);
        REQUIRE(error_over_bound(box.low, exact, bound, rule) <= 1.0 + 0x1p-40);
        REQUIRE(error_over_bound(box.high, exact, bound, rule) <= 1.0 + 0x1p-40);
      }
    }
  }
}

TEST_CASE("the box is what rounding every real number within the bound can give") {
  std::mt19937_64 generator(8);
  for (const DType type : kTypes) {
    const OutputRule rule{.dtype = type};
    for (int n = 0; n < 300; ++n) {
      const double hi = uniform(generator, -2, 2), bound = std::exp2(uniform(generator, -20, -2));
      const Certified exact{hi, 0, 0};
      for (int draw = 0; draw < 10; ++draw) {
        const double inside = uniform(generator, hi - bound, hi + bound);
        if (!(std::abs(inside - hi) <= bound * (1 - 0x1p-50))) continue;
        REQUIRE(accept(round_nearest(type, inside), exact, bound, rule) == Decision::pass);
      }
    }
  }
}

TEST_CASE("an answer between the narrow and the wide box is left to more precision") {
  const OutputRule rule{.dtype = DType::f64};
  const Certified exact{1.0, 0, 0x1p-30};
  const double bound = 0x1p-10;
  CHECK(accept(1.0 + bound, exact, bound, rule) == Decision::unsure);
  CHECK(accept(1.0 + bound - 0x1p-29, exact, bound, rule) == Decision::pass);
  CHECK(accept(1.0 + bound + 0x1p-29, exact, bound, rule) == Decision::fail);
  CHECK(accept(1.0, Certified{1.0, 0, kInfinity}, bound, rule) == Decision::unsure);
}

TEST_CASE("rounding of the output absorbs the radius of the truth where no midpoint is near") {
  const OutputRule rule{.dtype = DType::bf16};
  CHECK(accept(1.0, Certified{1.0 + 0x1p-12, 0, 0x1p-30}, 0, rule) == Decision::pass);
  CHECK(accept(1.0, Certified{1.0 + 0x1p-8, 0, 0x1p-30}, 0, rule) == Decision::unsure);
  CHECK(accept(0.0, Certified{0, 0, 0x1p-160}, 0, OutputRule{.dtype = DType::f32}) ==
        Decision::pass);
}

TEST_CASE("a tie at the end of the interval is decided by the digits below it") {
  // o + e is 1 + 2^-8 = the midpoint between 1 and the next bf16 number; even (1) is accepted only.
  const OutputRule rule{.dtype = DType::bf16};
  const double next = 1 + 0x1p-7;
  CHECK(accept(next, Certified{1.0, 0, 0}, 0x1p-8, rule) == Decision::fail);
  CHECK(accept(next, Certified{1.0, 0x1p-90, 0}, 0x1p-8, rule) == Decision::pass);
  CHECK(accept(next, Certified{1.0, -0x1p-90, 0}, 0x1p-8, rule) == Decision::fail);
}

TEST_CASE("NaN and infinity are refused where the box is finite") {
  for (const DType type : kTypes) {
    const OutputRule rule{.dtype = type};
    CHECK(accept(kNaN, {1, 0, 0}, 0.5, rule) == Decision::fail);
    CHECK(accept(kInfinity, {1, 0, 0}, 0.5, rule) == Decision::fail);
    CHECK(accept(-kInfinity, {1, 0, 0}, 0.5, rule) == Decision::fail);
    CHECK(error_over_bound(kNaN, {1, 0, 0}, 0.5, rule) == kInfinity);
  }
}

TEST_CASE("an overflow of the output is accepted as the contract says") {
  const Certified near{65500, 0, 0};
  OutputRule rule{.dtype = DType::f16};
  CHECK(accept(kInfinity, near, 30, rule) == Decision::pass);
  CHECK(accept(65504, near, 30, rule) == Decision::pass);
  CHECK(accept(kNaN, near, 30, rule) == Decision::fail);
  CHECK(accept(kInfinity, near, 10, rule) == Decision::fail);
  rule.overflow = Overflow::saturate;
  CHECK(accept(kInfinity, near, 30, rule) == Decision::fail);
  CHECK(accept(65504, near, 30, rule) == Decision::pass);
  CHECK(accept(65504, {1e6, 0, 0}, 30, rule) == Decision::pass);
  // e4m3 has no infinity: it answers an overflow with NaN.
  CHECK(accept(kNaN, {440, 0, 0}, 60, OutputRule{.dtype = DType::f8_e4m3}) == Decision::pass);
  CHECK(accept(kNaN, {440, 0, 0}, 1, OutputRule{.dtype = DType::f8_e4m3}) == Decision::fail);
}

TEST_CASE("flush to zero enlarges a box that holds a subnormal number, and no other") {
  OutputRule rule{.dtype = DType::f32, .flush_to_zero = true};
  const Certified tiny{0x1p-127, 0, 0};
  CHECK(accept(0.0, tiny, 0x1p-140, rule) == Decision::pass);
  CHECK(accept(-0.0, tiny, 0x1p-140, rule) == Decision::pass);
  CHECK(accept(0x1p-127, tiny, 0x1p-140, rule) == Decision::pass);
  CHECK(accept(-0x1p-149, tiny, 0x1p-140, rule) == Decision::fail);
  CHECK(accept(0.0, {0x1p-126, 0, 0}, 0, rule) == Decision::fail);
  CHECK(accept(0.0, {0x1p-126, -0x1p-190, 0}, 0, rule) ==
        Decision::pass);  // flushed before rounding
  rule.flush_to_zero = false;
  CHECK(accept(0.0, tiny, 0x1p-140, rule) == Decision::fail);
}

TEST_CASE("minus zero equals plus zero") {
  const OutputRule rule{.dtype = DType::f32};
  CHECK(accept(-0.0, {0, 0, 0}, 0, rule) == Decision::pass);
  CHECK(accept(0.0, {-0.0, 0, 0}, 0, rule) == Decision::pass);
}

TEST_CASE("a rule that does not round compares real numbers") {
  const OutputRule rule{.dtype = DType::f32, .rounds = false};
  CHECK(accept(1.25, {1.0, 0, 0}, 0.25, rule) == Decision::pass);
  CHECK(accept(std::nextafter(1.25, 2), {1.0, 0, 0}, 0.25, rule) == Decision::fail);
  CHECK(accept(1.25, {1.0, -0x1p-100, 0}, 0.25, rule) == Decision::fail);
  CHECK(accept(1.25, {1.0, 0x1p-100, 0}, 0.25, rule) == Decision::pass);
}

TEST_CASE("an infinite bound refuses nothing and a bound that is not a number is an error") {
  const OutputRule rule{.dtype = DType::f32};
  CHECK(accept(kNaN, {1, 0, 0}, kInfinity, rule) == Decision::pass);
  CHECK(accept(1e30, {1, 0, 0}, kInfinity, rule) == Decision::pass);
  CHECK_THROWS_AS(accept(1, {1, 0, 0}, kNaN, rule), std::logic_error);
  CHECK_THROWS_AS(accept(1, {1, 0, 0}, -1, rule), std::logic_error);
}

TEST_CASE("boxes grow with the bound and with the radius") {
  ringproof::test::property("wide boxes are nested", [] {
    const double hi =
        *rc::gen::map(rc::gen::inRange(-4000, 4000), [](int x) { return x / 1000.0; });
    const double bound = *rc::gen::map(rc::gen::inRange(0, 4000), [](int x) { return x / 3000.0; });
    const double more =
        bound + *rc::gen::map(rc::gen::inRange(0, 99), [](int x) { return x / 1e5; });
    const DType type = *rc::gen::elementOf(kTypes);
    const OutputRule rule{.dtype = type};
    const Box small = wide_box({hi, 0, 0}, bound, rule),
              large = wide_box({hi, 0, 0x1p-40}, more, rule);
    RC_ASSERT(large.low <= small.low && small.high <= large.high);
    const Box narrow = narrow_box({hi, 0, 0x1p-40}, bound, rule);
    RC_ASSERT(narrow.low >= small.low && narrow.high <= small.high);
  });
}
