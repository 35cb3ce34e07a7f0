// What a row could have refused: the printed table at its shortest length, and what must hold for
// every figure.
#include <string>

#include "oracle/case/dtype.hpp"
#include "oracle/contract/functional.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/contract/long_rows.hpp"
#include "tests/unit/contract/random_row.hpp"

using namespace ringproof;
using namespace ringproof::oracle;
using test::Family;

namespace {

/// Figures of docs/contract.md, section "power", at N = 8192. `mass_out` 1: none.
struct Printed {
  Family family;
  const char* contract;
  double gain, mass_lse, mass_out;
  int zeros, mean;  // percent of 64 columns
};

const std::string kDecode = "bf16-decode64+block128+acc128+keys128";
const std::string kRing = "bf16-ring8+block128+acc128+keys1024";

const Printed kTable[] = {
    {Family::randn, "bf16-flash", 0.14, 1.6e-3, 0.036, 16, 16},
    {Family::randn, "bf16-flash+block128+acc128", 0.073, 1.7e-4, 0.036, 9, 16},
    {Family::randn, kDecode.c_str(), 0.075, 2.6e-4, 0.036, 9, 16},
    {Family::randn, kRing.c_str(), 0.073, 1.5e-4, 0.036, 9, 16},
    {Family::randn, "fp32", 0.081, 4.0e-3, 0.036, 3, 8},
    {Family::randn, "fp32+block64+acc64", 2.2e-3, 1.5e-4, 0.011, 0, 0},
    {Family::pos, "bf16-flash", 0.018, 1.6e-3, 1, 0, 97},
    {Family::pos, "bf16-flash+block128+acc128", 0.016, 1.7e-4, 1, 0, 92},
    {Family::pos, "fp32+block64+acc64", 7.9e-5, 1.4e-4, 0.011, 0, 0},
    {Family::LC, "bf16-flash", 0.018, 1.6e-3, 0.021, 0, 34},
    {Family::LC, "bf16-flash+block128+acc128", 0.016, 1.7e-4, 0.021, 0, 34},
    {Family::LC, kDecode.c_str(), 0.016, 2.6e-4, 0.021, 0, 34},
    {Family::LC, kRing.c_str(), 0.016, 1.5e-4, 0.021, 0, 34},
    {Family::LC, "fp32+block64+acc64", 9.4e-5, 1.4e-4, 0.013, 0, 0},
    {Family::LD, "bf16-flash", 0.01, 1.5e-3, 0.017, 0, 25},
    {Family::LD, "bf16-flash+block128+acc128", 7.9e-3, 1.1e-4, 0.017, 0, 19},
    {Family::LD, kDecode.c_str(), 8.0e-3, 2.0e-4, 0.017, 0, 19},
    {Family::LD, kRing.c_str(), 7.9e-3, 8.1e-5, 0.017, 0, 19},
    {Family::LD, "fp32+block64+acc64", 8.4e-5, 7.9e-5, 0.017, 0, 0},
    {Family::LE, "bf16-flash", 7.8e-3, 9.1e-6, 1.2e-4, 0, 0},
    {Family::LE, kDecode.c_str(), 8.0e-3, 1.9e-4, 7.8e-3, 0, 0},
    {Family::LE, kRing.c_str(), 7.9e-3, 7.7e-5, 7.8e-3, 0, 0},
    {Family::LE, "fp32", 2.0e-3, 9.1e-6, 0.016, 0, 0},
};

/// Equal to the two digits that are printed.
bool prints_as(double value, double printed) { return std::abs(value / printed - 1) < 1.0 / 16; }

}  // namespace

TEST_CASE("the power of long rows is what the document prints") {
  test::LongRows rows;
  rows.next_length();
  for (const Printed& printed : kTable) {
    auto fixture = rows.row(printed.family);
    const std::string name = printed.contract;
    if (name.find("ring") != std::string::npos) fixture.problem.spec.ring = Ring{};
    const RowPower power = fixture.bound(read_contract(name, Spec{}), true).power;
    CAPTURE(test::name(printed.family), name, power.gain, power.missing_mass_lse,
            power.missing_mass_out);
    CHECK(prints_as(power.gain, printed.gain));
    CHECK(prints_as(power.missing_mass_lse, printed.mass_lse));
    CHECK(prints_as(power.missing_mass_out, printed.mass_out));
    CHECK(std::lround(100.0 * static_cast<double>(power.zeros_pass) / 64) == printed.zeros);
    CHECK(std::lround(100.0 * static_cast<double>(power.mean_pass) / 64) == printed.mean);
    CHECK((power.missing_block > 0) == (power.missing_mass_out < 1));
  }
}

TEST_CASE("a row without power says so, and its LSE keeps its own") {
  test::LongRows rows;
  rows.next_length();
  auto fixture = rows.row(Family::randn);
  const Contract coarse = read_contract(
      R"({"base":"fp32","pv":{"acc":{"model":"any_order","u":"0x1p-10","products":"rounded"}}})",
      Spec{});
  const RowPower power = fixture.bound(coarse, true).power;
  CHECK(std::isinf(power.gain));
  CHECK(power.missing_block == 0);
  CHECK(power.missing_mass_out == 1);
  CHECK(power.zeros_pass == power.zeros_differ);
  CHECK(power.twice_pass == power.twice_differ);
  CHECK_FALSE(power.functional_refuses_zeros);
  CHECK_FALSE(power.functional_refuses_twice);
  CHECK(power.missing_mass_lse < 0x1p-6);
}

TEST_CASE("what the power claims to refuse lies outside the accepted interval") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto fixture = test::random_row(seed);
    const Contract contract = read_contract(seed % 2 ? "bf16-flash" : "fp32", Spec{});
    const RowBound bound = fixture.bound(contract, true);
    if (!bound.not_applicable.empty() || fixture.row.visible == 0) continue;
    CAPTURE(seed);
    std::int64_t zeros = 0, means = 0;
    for (std::size_t c = 0; c < bound.out.size(); ++c) {
      const double o = fixture.row.out[c].hi, e = bound.out[c];
      const double low = round_nearest(contract.out.dtype, o - e);
      const double high = round_nearest(contract.out.dtype, o + e);
      double mean = 0;
      for (std::size_t j = 0; j < fixture.row.score.size(); ++j) {
        if (fixture.row.score[j] != -INFINITY) mean += fixture.values[j * bound.out.size() + c];
      }
      mean = round_nearest(contract.out.dtype, mean / static_cast<double>(fixture.row.visible));
      zeros += o != 0 && low <= 0 && 0 <= high;
      means += low <= mean && mean <= high;
    }
    // Accepted elements are never counted as refused.
    CHECK(bound.power.zeros_pass >= zeros);
    const std::int64_t equal_means =
        static_cast<std::int64_t>(bound.out.size()) - bound.power.mean_differ;
    CHECK(bound.power.mean_pass + equal_means >= means);
  }
}

TEST_CASE("sums of signed errors refuse zeros and twice an answer only where they can") {
  // Answers of `size` beside values of about one that cancel in pairs of keys.
  std::int64_t neither = 0, zeros_alone = 0, both = 0;
  for (int n = 0; n < 60; ++n) {
    test::RowFixture fixture(40, 16, 4);
    const double size = std::exp2(-10 + 0.1 * n);
    for (std::size_t j = 0; j < 40; ++j) {
      fixture.row.dot[j] = fixture.row.abs_dot[j] = static_cast<double>(j / 2 % 7) / 8;
      for (std::size_t c = 0; c < 4; ++c) {
        const double pair = static_cast<double>(1 + (j / 2 + c) % 5);
        fixture.values[4 * j + c] = size + (j % 2 == 0 ? pair : -pair);
      }
    }
    fixture.finish();
    const RowBound bound = fixture.bound(read_contract("bf16-flash", Spec{}));
    double S = 0;
    for (const Certified& o : fixture.row.out) S += std::abs(o.hi);
    const double E = bound.functional;
    // An answer is off by up to E, so it adds up to S - E at least, and twice that is off by
    // 2 (S - E) - S.
    CHECK(bound.power.functional_refuses_zeros == (S > E));
    CHECK(bound.power.functional_refuses_twice == (2 * (S - E) - S > E));
    const bool twice = bound.power.functional_refuses_twice;
    ++(twice ? both : bound.power.functional_refuses_zeros ? zeros_alone : neither);
  }
  CHECK(neither > 0);
  CHECK(zeros_alone > 0);
  CHECK(both > 0);
}

TEST_CASE("a missing block that is claimed to be refused is refused by the bounds of both rows") {
  // The row without the block is built and bounded by itself; its kernel's answers must not
  // overlap.
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto fixture = test::random_row(seed, {.most_keys = 30, .with_sink = seed % 2 == 0});
    const Contract contract = read_contract(seed % 3 == 0   ? "bf16-ring3"
                                            : seed % 3 == 1 ? "bf16-flash"
                                                            : "fp32",
                                            Spec{});
    const RowBound bound = fixture.bound(contract, true);
    if (bound.power.missing_block == 0) continue;
    const std::int64_t length = bound.power.missing_block;
    for (std::int64_t first = 0; first < fixture.problem.keys; first += length) {
      auto without = fixture;
      for (std::int64_t j = first; j < std::min(first + length, fixture.problem.keys); ++j)
        without.hide(j);
      without.finish();
      if (without.row.visible == fixture.row.visible || without.row.empty()) continue;
      const RowBound mutant = without.bound(contract);
      bool refused = false;
      for (std::size_t c = 0; c < bound.out.size(); ++c) {
        const double distance = std::abs(fixture.row.out[c].hi - without.row.out[c].hi);
        refused |= distance > bound.out[c] + mutant.out[c];
      }
      CAPTURE(seed, first, length);
      CHECK(refused);
    }
  }
}

TEST_CASE("on exact rows every single key is refused, or none is claimed") {
  // Equal scores and integers: without key n the answer is the mean of the others.
  const auto power_of = [](const std::vector<double>& values, const char* contract) {
    test::RowFixture fixture(static_cast<std::int64_t>(values.size()), 16, 1);
    fixture.values = values;
    fixture.finish();
    return fixture.bound(read_contract(contract, Spec{}), true).power;
  };
  CHECK(power_of({1, 5, 9, 2}, "fp32").missing_block == 1);
  CHECK(power_of({1, 5, 9, 2}, "fp32").missing_mass_out == 0.25);
  CHECK(power_of({2, 1, 3}, "fp32").missing_block == 0);  // the first is the mean of the others
  CHECK(power_of({1, 5, 9, 2}, "bf16-ring2+sigmoid").missing_block == 0);
}

TEST_CASE("under merges by LSE alone budgets grow when keys are left out") {
  test::RowFixture fixture(12, 16, 2);
  for (std::size_t j = 0; j < 12; ++j) fixture.row.dot[j] = fixture.row.abs_dot[j] = 0.3 * (j % 5);
  for (std::size_t n = 0; n < 24; ++n) fixture.values[n] = static_cast<double>(n % 7) - 3;
  fixture.finish();
  for (const char* name : {"fp32", "fp32-split2", "fp32-decode2", "fp32-ring2"}) {
    const Contract contract = read_contract(name, Spec{});
    RowBudget row;
    std::vector<FormSums> forms;
    const std::size_t count = row_forms(contract, fixture.problem, fixture.row, row, forms);
    for (std::size_t f = 0; f < count; ++f) {
      const Merge form = forms[f].budget.form;
      INFO(name << ", form " << static_cast<int>(form));
      forms[f].denominator = 0.875;
      const LeftOut left = left_out(row, forms[f], 0.25);
      const double growth = growth_without_keys(row, forms[f].budget, -std::log1p(-0.25));
      const bool by_lse = form == Merge::lse_once || form == Merge::lse_sequential;
      CHECK((growth > 0) == by_lse);
      CHECK(growth < 0x1p-18);
      // The document's: D - W_S, and e^(2 delta) for every budget that grows.
      const auto close = [](double a, double b) { return std::abs(a - b) <= 0x1p-50 * b; };
      CHECK(left.weight == 0.25);
      CHECK(close(left.denominator, 0.875 - 0.25 - (1 - std::exp(-2 * growth))));
      CHECK(close(left.factor, std::exp(2 * growth)));
      const double extra = 4 * std::expm1(growth) * std::exp(growth);
      CHECK(close(left.extra, extra * (1 + forms[f].weights.common_sum)));
      // It is as (18) has it: |L| and ln sum p e^(CL + B) move by -ln(1 - W_S) each.
      const double us = contract.softmax.u;
      if (by_lse) CHECK(growth >= us * -std::log1p(-0.25) * 2);
    }
  }
}

TEST_CASE("a bound that is no number wins over every other, so that it is seen") {
  double largest = 1;
  take_larger(largest, 0.5);
  CHECK(largest == 1);
  take_larger(largest, 2);
  CHECK(largest == 2);
  take_larger(largest, std::nan(""));
  CHECK(std::isnan(largest));
}

TEST_CASE("what a denominator loses counts twice for a row that lacks half of its weight") {
  // One key at the maximum, one at `second`, and many that the cast to fp8 may take whole.
  const auto row = [](double second, std::size_t light, bool lacks_second) {
    test::RowFixture fixture(static_cast<std::int64_t>(light) + 2, 16, 1);
    fixture.row.dot.assign(light + 2, -13.0);
    fixture.row.abs_dot.assign(light + 2, 13.0);
    fixture.row.dot[0] = fixture.row.abs_dot[0] = 0;
    fixture.row.dot[1] = second, fixture.row.abs_dot[1] = -second;
    fixture.values.assign(light + 2, 1);
    if (lacks_second) fixture.hide(1);
    fixture.finish();
    return fixture;
  };
  const Contract contract = read_contract("fp8-e4m3-flash+sumcast", Spec{});
  for (const std::size_t light : {20000, 40000}) {
    // The score at which the second key has just the mass that is claimed to be refused.
    double low = -10, high = 0;
    for (int n = 0; n < 40; ++n) {
      const double middle = (low + high) / 2;
      const auto f = row(middle, light, false);
      (f.row.p[1] < f.bound(contract).power.missing_mass_lse ? low : high) = middle;
    }
    const auto whole = row(high, light, false), lacking = row(high, light, true);
    const double mass = whole.bound(contract).power.missing_mass_lse;
    CAPTURE(light, mass);
    REQUIRE(whole.row.p[1] >= mass);
    CHECK(mass < 0.5);
    CHECK(whole.row.lse.hi - lacking.row.lse.hi >
          whole.bound(contract).lse + lacking.bound(contract).lse);
  }
  const auto lost = row(-1, 400000, false);
  CHECK(lost.bound(contract).power.missing_mass_lse == 1);
}

TEST_CASE("the missing mass counts what a denominator may lose for half of the weight") {
  // Of four equal keys in blocks of one l = 4, and 4 + 4 + 2 steps may each lose 2^-10 of it.
  test::RowFixture fixture(4, 16, 1);
  fixture.values.assign(4, 1);
  fixture.finish();
  const Contract contract = read_contract(R"({"base":"fp32","l":{"eta":"0x1p-10"}})", Spec{});
  const double lost = 10 * 0x1p-10 / 4, kept = 1 - 2 * lost;
  const double mass = fixture.bound(contract).power.missing_mass_lse;
  CHECK(prints_as(mass, 1 - kept * kept));
}
