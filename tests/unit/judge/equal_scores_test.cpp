// The exact mean of rows without scores against rational arithmetic.
#include "oracle/judge/equal_scores.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include "oracle/judge/row_judge.hpp"
#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;
using Rational = boost::multiprecision::cpp_rational;

namespace {

CaseBuilder scoreless(std::int64_t keys, OwnedTensor values) {
  CaseBuilder builder = random_case(DType::f32, {.heads = 1, .queries = 3, .keys = keys});
  builder.set("q", make_tensor(DType::f32, {1, 1, 3, 4}, [](std::int64_t) { return 0; }));
  return builder.set("v", std::move(values));
}

struct Sharpened {
  bool done;
  RowTruth row;
};
Sharpened sharpen(const CaseBuilder& builder) {
  const Case input = builder.assemble();
  const HeadTruth head(input.problem, 0, 0, Precision::fast);
  Sharpened result;
  const HeadTruth::RowId id{0, 1};
  head.rows({&id, 1}, &result.row);
  const double* values = head.values() + result.row.keys.first * head.values_stride();
  result.done = sharpen_equal_scores(result.row, values, head.values_stride());
  return result;
}

}  // namespace

TEST_CASE("the mean of values is certified to within its radius") {
  for (const std::int64_t keys : {1, 2, 3, 7, 64, 1000}) {
    CaseBuilder builder = scoreless(keys, normal(DType::f32, {1, 1, keys, 3}, 4, 100));
    const Sharpened result = sharpen(builder);
    REQUIRE(result.done);
    for (std::int64_t c = 0; c < 3; ++c) {
      Rational mean = 0;
      for (std::int64_t j = 0; j < keys; ++j) mean += Rational(value_at(builder, "v", j * 3 + c));
      mean /= keys;
      const Certified& out = result.row.out[static_cast<std::size_t>(c)];
      const Rational error = mean - Rational(out.hi) - Rational(out.lo);
      CHECK(abs(error) <= Rational(out.radius));
      CHECK(out.radius <= 0x1p-100 * std::abs(out.hi));
    }
  }
}

TEST_CASE("a mean of values far apart needs both words of their sum") {
  // 1, 2^-17, 2^-34 ...: from the fifth on they lie below the last digit of the first.
  const std::int64_t keys = 7;
  const auto at = [](std::int64_t j) { return std::ldexp(1.0, static_cast<int>(-17 * j)); };
  const CaseBuilder builder = scoreless(
      keys, make_tensor(DType::f32, {1, 1, keys, 3}, [&](std::int64_t n) { return at(n / 3); }));
  const Sharpened result = sharpen(builder);
  REQUIRE(result.done);
  Rational mean = 0;
  for (std::int64_t j = 0; j < keys; ++j) mean += Rational(at(j)) / keys;
  const Certified& out = result.row.out[1];
  CHECK(abs(mean - Rational(out.hi) - Rational(out.lo)) <= Rational(out.radius));
}

TEST_CASE("hidden keys have no part in the mean") {
  CaseBuilder builder = scoreless(5, normal(DType::f32, {1, 1, 5, 3}, 4));
  builder.set("mask",
              make_tensor(DType::boolean, {3, 5}, [](std::int64_t n) { return n % 5 != 2; }));
  const Sharpened result = sharpen(builder);
  REQUIRE(result.done);
  REQUIRE(result.row.visible == 4);
  for (std::int64_t c = 0; c < 3; ++c) {
    Rational mean = 0;
    for (const std::int64_t j : {0, 1, 3, 4})
      mean += Rational(value_at(builder, "v", j * 3 + c)) / 4;
    const Certified& out = result.row.out[static_cast<std::size_t>(c)];
    CHECK(abs(mean - Rational(out.hi) - Rational(out.lo)) <= Rational(out.radius));
  }
}

TEST_CASE("a column that sums to zero is zero without a radius") {
  const std::int64_t keys = 600;
  const CaseBuilder builder =
      scoreless(keys, make_tensor(DType::f32, {1, 1, keys, 3}, [&](std::int64_t n) {
                  const double value = 1 + n % 300 % 17;
                  return n / 3 < keys / 2 ? value : -value;
                }));
  const Sharpened result = sharpen(builder);
  REQUIRE(result.done);
  for (const Certified& out : result.row.out) {
    CHECK(out.hi == 0);
    CHECK(out.lo == 0);
    CHECK(out.radius == 0);
  }
}

TEST_CASE("rows with scores, biases, sinks or sums of too many digits are left alone") {
  CHECK_FALSE(sharpen(random_case(DType::f32, {.heads = 1, .queries = 3})).done);
  CaseBuilder sink = scoreless(9, normal(DType::f32, {1, 1, 9, 3}, 4));
  sink.set("sinks", make_tensor(DType::f32, {1}, [](std::int64_t) { return 1; }));
  CHECK_FALSE(sharpen(sink).done);
  CaseBuilder bias = scoreless(9, normal(DType::f32, {1, 1, 9, 3}, 4));
  bias.set("bias", make_tensor(DType::f32, {9}, [](std::int64_t n) { return n == 4; }));
  CHECK_FALSE(sharpen(bias).done);
  CaseBuilder distance = scoreless(9, normal(DType::f32, {1, 1, 9, 3}, 4));
  distance.set("alibi_slopes", make_tensor(DType::f32, {1}, [](std::int64_t) { return 0.5; }));
  CHECK_FALSE(sharpen(distance).done);
  CaseBuilder wide = scoreless(9, make_tensor(DType::f64, {1, 1, 9, 3}, [](std::int64_t n) {
                                 return std::ldexp(1.0, static_cast<int>(n) * 9);
                               }));
  wide.set("q", make_tensor(DType::f64, {1, 1, 3, 4}, [](std::int64_t) { return 0; }));
  wide.set("k", normal(DType::f64, {1, 1, 9, 4}, 1));
  CHECK_FALSE(sharpen(wide).done);
}
