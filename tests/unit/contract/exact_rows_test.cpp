// T0, (26a): on rows of equal scores and columns of few bits a kernel makes one kind of error, the
// final division. Where a kernel may do otherwise, the theorem must not be used.
#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

/// n equal scores of zero; columns are filled by the caller.
test::RowFixture equal_scores(std::int64_t n, std::int64_t columns) {
  return test::RowFixture(n, 16, columns);
}

/// Integers with sum zero: pairs of opposite values in a random order.
std::vector<double> zero_sum(std::int64_t n, std::mt19937& generator) {
  std::vector<double> values;
  for (std::int64_t j = 0; j < n / 2; ++j) {
    const auto v = static_cast<double>(1 + generator() % 9);
    values.push_back(v);
    values.push_back(-v);
  }
  std::shuffle(values.begin(), values.end(), generator);
  return values;
}

RowBound bound_of(const std::string& contract, const test::RowFixture& fixture) {
  return fixture.bound(read_contract(contract, Spec{}));
}

}  // namespace

TEST_CASE("on an exact row the bound is the final division's alone, and zero for a zero sum") {
  auto fixture = equal_scores(96, 2);
  std::mt19937 generator(1);
  const auto zeros = zero_sum(96, generator);
  for (std::size_t j = 0; j < 96; ++j) {
    fixture.values[2 * j] = zeros[j];
    fixture.values[2 * j + 1] = 1 + static_cast<double>(j % 3);
  }
  fixture.finish();
  const RowBound bound = bound_of("bf16-flash", fixture);
  CHECK(bound.out[0] == 0);
  // Two operations of 2^-23 on a mean of 2, and two underflows.
  const double expected = std::expm1(-2 * std::log1p(-0x1p-23)) * 2 + 2 * 0x1p-126;
  CHECK(std::abs(bound.out[1] / expected - 1) < 0x1p-26);
}

TEST_CASE("a normalised kernel sums rounded shares, so its rows are never exact") {
  // A two-pass fp32 kernel multiplies every value by fl(1/96): its sum of a zero-sum column is not
  // zero.
  std::mt19937 generator(3);
  double worst = 0;
  for (int draw = 0; draw < 50; ++draw) {
    auto fixture = equal_scores(96, 1);
    fixture.values = zero_sum(96, generator);
    fixture.finish();
    float sum = 0;
    for (const double v : fixture.values) {
      const float share = 1.0F / 96.0F;
      sum += share * static_cast<float>(v);
    }
    const RowBound bound = bound_of("fp32", fixture);
    CHECK(std::abs(static_cast<double>(sum)) <= bound.out[0]);
    worst = std::max(worst, std::abs(static_cast<double>(sum)));
  }
  CHECK(worst > 0);  // (26a) would have demanded exactly zero
}

TEST_CASE("a value rounded on load leaves its grid, so such rows are never exact") {
  // tf32 keeps ten bits behind the point: 1 + 2^-12 is loaded as 1.
  auto fixture = equal_scores(64, 1);
  for (double& v : fixture.values) v = 1 + 0x1p-12;
  fixture.finish();
  CHECK(bound_of("tf32-flash", fixture).out[0] >= 0x1p-12);
}

TEST_CASE("a column whose sum needs too many bits is not exact") {
  auto fixture = equal_scores(64, 2);
  for (std::size_t j = 0; j < 64; ++j) {
    // 64 numbers of up to 2^17 are sums below 2^24 if they are integers, but not in steps of 1/8.
    const double sign = j % 2 ? -1 : 1;
    fixture.values[2 * j] = sign * 0x1p17;
    fixture.values[2 * j + 1] = j < 2 ? sign * 0.125 : sign * 0x1p17;
  }
  fixture.finish();
  const RowBound bound = bound_of("bf16-flash", fixture);
  CHECK(bound.out[0] == 0);
  CHECK(bound.out[1] > 0);
}

TEST_CASE("a column is exact up to the last sum that the accumulator holds, and not beyond") {
  // Sizes of one sign and their negatives, so that a sum of zero is exact or bounded away from it.
  const auto zero_is_exact = [](double largest, double step) {
    auto fixture = equal_scores(4, 1);
    fixture.values = {largest, -largest, step, -step};
    fixture.finish();
    return bound_of("bf16-flash", fixture).out[0] == 0;
  };
  for (const double step : {1.0, 0x1p-40, 0x1p40}) {
    // 2 largest + 2 step: below 2^24 steps, or that many.
    CHECK(zero_is_exact((0x1p23 - 2) * step, step));
    CHECK_FALSE(zero_is_exact((0x1p23 - 1) * step, step));
  }
  // The format of the sums has no numbers below 2^-149, and loses a half of it where it flushes.
  CHECK(zero_is_exact(0x1p-120, 0x1p-125));
  CHECK_FALSE(zero_is_exact(0x1p-140, 0x1p-150));
}

TEST_CASE("what makes an exponential or a weight other than one ends exactness") {
  const auto zero_sum_bound = [](const std::string& contract, auto change) {
    auto fixture = equal_scores(64, 1);
    std::mt19937 generator(5);
    fixture.values = zero_sum(64, generator);
    change(fixture);
    fixture.finish();
    return bound_of(contract, fixture).out[0];
  };
  const auto nothing = [](test::RowFixture&) {};
  CHECK(zero_sum_bound("bf16-flash", nothing) == 0);
  CHECK(zero_sum_bound("bf16-flash+exp13", nothing) > 0);  // exp(0) may differ from 1
  CHECK(zero_sum_bound("bf16-ring2", nothing) > 0);        // partial results are stored
  CHECK(zero_sum_bound(R"({"base":"bf16-flash","p":{"scale":3}})", nothing) > 0);
  CHECK(zero_sum_bound(R"({"base":"bf16-flash","softmax":{"rescale":"lazy","lazy_log2":8}})",
                       nothing) > 0);
  CHECK(zero_sum_bound(R"({"base":"bf16-flash","pv":{"acc":{"model":"mma","b":32,"neab":-10}}})",
                       nothing) > 0);
  for (const char* contract :  // a sink as large as the scores, with and without an error
       {"bf16-flash", R"({"base":"bf16-flash","score":{"sink_roundings":0}})"}) {
    CHECK(zero_sum_bound(contract, [](test::RowFixture& f) { f.row.has_sink = true; }) > 0);
  }
  CHECK(zero_sum_bound("bf16-flash",
                       [](test::RowFixture& f) { f.row.dot[7] = f.row.abs_dot[7] = 0x1p-30; }) > 0);
  CHECK(zero_sum_bound("bf16-flash", [](test::RowFixture& f) {
          f.row.bias.assign(64, 1.0);  // the fused argument form rounds 1 * log2(e)
        }) > 0);
}
