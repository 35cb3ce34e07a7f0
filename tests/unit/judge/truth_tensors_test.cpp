// The truth as tensors: intervals that hold the answer, and rounding only where it is decided.
#include "oracle/judge/truth_tensors.hpp"

#include <cmath>
#include <limits>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/exact_row.hpp"
#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("intervals are narrow, hold each other at more digits, and round to one answer") {
  const CaseBuilder builder = random_case(DType::f32, {.batches = 2, .queries = 20});
  const Case input = builder.assemble();
  const TruthTensors fast =
      truth_tensors(input.problem, LseBase::e, 0, {}, RoundTo{DType::f32, DType::f32});
  const TruthTensors digits = truth_tensors(input.problem, LseBase::e, 200, {});
  REQUIRE(fast.out.lo.size() == 2 * 2 * 20 * 3);
  REQUIRE(fast.lse.lo.size() == 2 * 2 * 20);
  for (std::size_t n = 0; n < fast.out.lo.size(); ++n) {
    CHECK(fast.out.lo[n] <= digits.out.hi[n]);
    CHECK(digits.out.lo[n] <= fast.out.hi[n]);
    const double two_above = std::nextafter(std::nextafter(fast.out.lo[n], 9), 9);
    CHECK(fast.out.hi[n] <= two_above);
  }
  CHECK(fast.out.undecided() + fast.lse.undecided() == 0);
  REQUIRE(fast.out.rounded.size() == fast.out.lo.size());
  const auto bytes = encoded(DType::f32, fast.out.rounded);
  for (std::size_t n = 0; n < fast.out.lo.size(); ++n) {
    CHECK(fast.out.rounded[n] == round_nearest(DType::f32, fast.out.lo[n]));
    CHECK(decode(DType::f32, bytes.data() + 4 * n) == fast.out.rounded[n]);
  }
  CHECK(digits.out.rounded.empty());
}

TEST_CASE("an interval is the narrowest one in binary64 that holds the ball") {
  IntervalTensor tensor;
  tensor.resize(4, false);
  const double below = 1 - 0x1p-53, above = 1 + 0x1p-52;
  tensor.set(0, {1, 0x1p-60, 0x1p-70}, DType::f32);
  tensor.set(1, {1, -0x1p-60, 0x1p-70}, DType::f32);
  tensor.set(2, {1, 0, 0x1p-60}, DType::f32);
  tensor.set(3, {1, 0, 0}, DType::f32);
  CHECK(tensor.lo == std::vector<double>{1, below, below, 1});
  CHECK(tensor.hi == std::vector<double>{above, 1, above, 1});
}

TEST_CASE("a number of which nothing is known may be any, and is not rounded") {
  const double infinity = std::numeric_limits<double>::infinity();
  IntervalTensor tensor;
  tensor.resize(2, true);
  tensor.set(0, {1, 0, infinity}, DType::f32);
  tensor.set(1, {1, 0, std::numeric_limits<double>::quiet_NaN()}, DType::f32);
  for (const std::size_t n : {0, 1}) {
    CHECK(tensor.lo[n] == -infinity);
    CHECK(tensor.hi[n] == infinity);
    CHECK(std::isnan(tensor.rounded[n]));
  }
}

TEST_CASE("a row is certified if all of its radii are finite, or if it needs none") {
  RowTruth row;
  CHECK(is_certified(row));  // it sees no key
  row.visible = 1;
  row.out = {{1, 0, 0x1p-60}, {2, 0, 0}};
  CHECK(is_certified(row));
  const double infinity = std::numeric_limits<double>::infinity();
  row.out[1].radius = infinity;
  CHECK_FALSE(is_certified(row));
  row.out[1].radius = 0;
  row.lse.radius = infinity;
  CHECK_FALSE(is_certified(row));
  row.not_applicable = "it sees NaN";
  CHECK(is_certified(row));
}

TEST_CASE("a ball is decided if all of it rounds to one number") {
  const double middle = 1 + 0x1p-24;
  CHECK(!decided(DType::f32, {middle, 0, 0x1p-200}));
  CHECK(decided(DType::f32, {middle, 0, 0}) == 1.0);  // a point between two numbers: ties to even
  CHECK(decided(DType::f32, {middle, 0x1p-90, 0x1p-91}) == 1 + 0x1p-23);
  CHECK(decided(DType::f64, {1, 0x1p-60, 0x1p-70}) == 1.0);
  CHECK(!decided(DType::f64, {1, 0x1p-53, 0x1p-150}));
  CHECK(!decided(DType::f64, {1, 0, std::numeric_limits<double>::infinity()}));
}

namespace {

/// Two keys for one query, with the given scores and values, and a scale.
CaseBuilder two_keys(double first_score, double second_score, double first_value,
                     double second_value, const std::string& spec) {
  CaseBuilder builder;
  builder.set("q", make_tensor(DType::f32, {1, 1, 1, 3}, [](std::int64_t) { return 1; }));
  builder.set("k", make_tensor(DType::f32, {1, 1, 2, 3}, [&](std::int64_t n) {
                return n == 0 ? first_score : n == 3 ? second_score : 0.0;
              }));
  builder.set("v", make_tensor(DType::f32, {1, 1, 2, 1}, [&](std::int64_t n) {
                return n == 0 ? first_value : second_value;
              }));
  builder.spec = spec;
  return builder;
}

TruthTensors rounded_truth(const CaseBuilder& builder, DType type) {
  const Case input = builder.assemble();
  return truth_tensors(input.problem, LseBase::e, 0, {}, RoundTo{type, DType::f32});
}

}  // namespace

TEST_CASE("a true tie is rounded to even, also where the scale is an irrational number") {
  // Equal scores: the answer is the mean of the values, half-way between two numbers of BF16.
  for (const char* spec : {R"({"version": 1})", R"({"version": 1, "scale": 0.3})",
                           R"({"version": 1, "softcap": 2})"}) {
    INFO(spec);
    const TruthTensors down = rounded_truth(two_keys(0.7f, 0.7f, 1, 1 + 0x1p-7, spec), DType::bf16);
    CHECK(down.out.undecided() == 0);
    CHECK(down.out.rounded[0] == 1);
    CHECK(down.out.lo[0] == 1 + 0x1p-8);
    CHECK(down.out.hi[0] == 1 + 0x1p-8);
    const TruthTensors up =
        rounded_truth(two_keys(0.7f, 0.7f, 1 + 0x1p-7, 1 + 0x1p-6, spec), DType::bf16);
    CHECK(up.out.rounded[0] == 1 + 0x1p-6);
    const TruthTensors zero = rounded_truth(two_keys(0.7f, 0.7f, 3, -3, spec), DType::f64);
    CHECK(zero.out.rounded[0] == 0);
    CHECK(zero.out.lo[0] == 0);
    CHECK(zero.out.hi[0] == 0);
  }
}

TEST_CASE("a tie needs the mean of every group of equal scores, not that of all keys") {
  // The mean of both values is a tie, the weighted mean is a little above or below.
  const TruthTensors above =
      rounded_truth(two_keys(0, 0x1p-100, 1, 1 + 0x1p-7, R"({"version": 1})"), DType::bf16);
  CHECK(above.out.rounded[0] == 1 + 0x1p-7);
  CHECK(above.out.undecided() == 0);
  const TruthTensors below =
      rounded_truth(two_keys(0x1p-100, 0, 1, 1 + 0x1p-7, R"({"version": 1})"), DType::bf16);
  CHECK(below.out.rounded[0] == 1);
}

TEST_CASE("exact rows know equal scores with factors, bias, distance and sink") {
  CaseBuilder builder = two_keys(1, 3, 2, 4, R"({"version": 1})");
  builder.set("bias", make_tensor(DType::f32, {1, 2}, [](std::int64_t n) { return n == 0; }));
  // D = 4, so that the scale is 1/2 and both scores are 3/2.
  builder.set("q", make_tensor(DType::f32, {1, 1, 1, 4}, [](std::int64_t) { return 1; }));
  builder.set("k", make_tensor(DType::f32, {1, 1, 2, 4}, [](std::int64_t n) {
                return n == 0 ? 1 : n == 4 ? 3 : 0;
              }));
  const auto column_is = [&](double value) {
    const Case input = builder.assemble();
    RowTruth row;
    interval_row(input.problem, 0, 0, 0, 128, row);
    return ExactRow(input.problem, row).column_is(0, Dyadic(value));
  };
  CHECK(column_is(3));
  CHECK_FALSE(column_is(3.5));
  builder.set("v_scale", make_tensor(DType::f32, {1, 1, 1, 1}, [](std::int64_t) { return 0.5; }));
  CHECK(column_is(1.5));
  builder.set("sinks", make_tensor(DType::f32, {1}, [](std::int64_t) { return 1.5; }));
  CHECK(column_is(1));  // three members, one of them with the value 0
  builder.set("sinks", make_tensor(DType::f32, {1}, [](std::int64_t) { return 1.25; }));
  CHECK_FALSE(column_is(1));
  builder.erase("sinks");
  builder.set("alibi_slopes", make_tensor(DType::f32, {1}, [](std::int64_t) { return 0.5; }));
  // Two groups now, whose means are 1 and 2: neither is the mean of the row.
  for (const double one : {1.0, 1.5, 2.0}) CHECK_FALSE(column_is(one));
  builder.erase("alibi_slopes");
  CHECK(column_is(1.5));
  builder.spec = R"({"version": 1, "softcap": 2})";  // bends 1/2 and 3/2 before the bias is added
  for (const double one : {1.0, 1.5, 2.0}) CHECK_FALSE(column_is(one));
}

TEST_CASE("the LSE in base 2 is the natural one times log2 of e") {
  const CaseBuilder builder = random_case(DType::f32);
  const Case input = builder.assemble();
  const TruthTensors natural = truth_tensors(input.problem, LseBase::e, 0, {});
  const TruthTensors binary = truth_tensors(input.problem, LseBase::two, 0, {});
  for (std::size_t n = 0; n < natural.lse.lo.size(); ++n) {
    CHECK(std::abs(binary.lse.lo[n] - natural.lse.lo[n] * 1.4426950408889634) <=
          0x1p-50 * std::abs(binary.lse.lo[n]));
    CHECK(binary.lse.lo[n] <= binary.lse.hi[n]);
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
  // A bound is stretched as well, and rounded upwards.
  Contract contract = read_contract("fp32", Spec{});
  CHECK(lse_in_base(contract, {1, 0, 0}, 0x1p-20).bound == 0x1p-20);
  contract.lse.base = LseBase::two;
  const double bound = lse_in_base(contract, {1, 0, 0}, 0x1p-20).bound * 0x1p20;
  CHECK(bound > 0x1.71547652b82fep+0);  // log2(e), rounded down
  CHECK(bound <= 0x1.71547652b83p+0);
}

TEST_CASE("empty rows and rows that see NaN are written as what they are") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 4, .keys = 2});
  builder.spec = R"({"version": 1, "causal": "bottom_right"})";
  set_value(builder, "v", 3, std::numeric_limits<double>::quiet_NaN());  // of the last key
  const Case input = builder.assemble();
  const TruthTensors truth = truth_tensors(input.problem, LseBase::e, 0, {});
  CHECK(truth.out.lo[0] == 0);
  CHECK(truth.out.hi[0] == 0);
  CHECK(truth.lse.hi[0] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(truth.out.lo[3 * 3]));
  CHECK(std::isfinite(truth.out.lo[2 * 3]));
}
