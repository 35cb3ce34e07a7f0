// The bound of a row against the literal reading of the document, and what must hold between
// bounds.
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/contract/literal.hpp"
#include "tests/unit/contract/random_row.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

/// Every preset, every variant, every way to merge.
const std::string kContracts[] = {
    "fp64",
    "fp32",
    "fp32-simd",
    "fp32-gpu",
    "tf32-flash",
    "fp16-flash",
    "bf16-flash",
    "fp8-e4m3-flash",
    "fp16-eager",
    "bf16-eager",
    "bf16-unfused",
    "bf16-io",
    "fp16-io",
    "bf16-p16",
    "bf16-split3",
    "fp16-decode4",
    "bf16-ring4",
    "bf16-ring4-lowp",
    "fp32-ring8",
    "fp64-ring2",
    "bf16-ring4+sigmoid",
    "bf16-ring4-lowp+sigmoid+run32",
    "fp16-ring3+sigmoid",
    "bf16-flash+block128+acc128",
    "fp32+block4+acc4",
    "bf16-flash+asc",
    "fp32+desc",
    "bf16-decode4+keys8+block4+acc4",
    "bf16-ring2+keys16",
    "bf16-flash+exp13",
    "bf16-ring2+exp13+keys7",
    "bf16-flash+sumcast",
    "fp8-e4m3-flash+sumcast",
    "fp16-ring3+sumcast+sigmoid",
    R"({"base":"fp8-e4m3-flash+sumcast","p":{"scale":3}})",
    R"({"base":"fp8-e4m3-flash+sumcast","p":{"scale":1,"round":"faithful"}})",
    R"({"base":"fp8-e4m3-flash+sumcast","p":{"scale":"0x1p-2"}})",
    R"({"base":"fp16-decode4+sumcast","p":{"eta":"0x1p-12"}})",
    R"({"base":"fp32","l":{"acc":{"model":"any_order","u":"0x1p-6","products":"exact"},)"
    R"("eta":"0x1p-10"}})",
    "bf16-flash+ftz",
    "bf16-flash+softcap",
    "bf16-flash+bias",
    "bf16-flash+biasstore",
    "bf16-flash+gacc32",
    R"({"base":"bf16-flash","softmax":{"rescale":"lazy","lazy_log2":8}})",
    R"({"base":"bf16-flash","softmax":{"rescale":"lazy","lazy_log2":"0x1p-10"}})",
    R"({"base":"bf16-flash","softmax":{"alpha_from":"scaled_max"}})",
    R"({"base":"bf16-flash","softmax":{"arg":"sub_log2"},"p":{"round":"faithful"}})",
    R"({"base":"fp32","softmax":{"u":"0x1p-10","exp_rel":"0x1p-10"},)"
    R"("l":{"u":"0x1p-10"},"pv":{"u":"0x1p-10"}})",
    R"({"base":"bf16-flash","p":{"scale":3},"out":{"round":"rz","ftz":true}})",
    R"({"base":"bf16-flash","out":{"round":"rz"}})",
    R"({"base":"fp32","score":{"eta":"0x1p-20"}})",
    R"({"base":"bf16-flash","p":{"normalized":"any"}})",
    R"({"base":"fp32","softmax":{"exp_zero":"approx"},)"
    R"("l":{"acc":{"model":"any_order","u":"0x1p-4","products":"exact"}}})",
    R"({"base":"fp32","l":{"acc":{"model":"tree","u":"0x1p-24","products":"exact","leaf":4}}})",
    R"({"base":"fp32-ring3","partials":{"o_u":"0","run_u":"0","merge":["unnormalized"]}})",
};

/// The ring of a spec, for contracts that merge.
void give_ring(test::RowFixture& fixture, std::uint64_t seed) {
  if (seed % 3 == 0) return;
  const RingLayout layouts[] = {RingLayout::contiguous, RingLayout::zigzag, RingLayout::striped};
  fixture.problem.spec.ring =
      Ring{layouts[seed / 3 % 3], seed % 2 ? RingOrder::up : RingOrder::down};
}

void check_agrees(double bound, long double literal, long double budget,
                  long double rounding = 0x1p-29L) {
  if (std::isinf(static_cast<double>(literal))) {
    CHECK(std::isinf(bound));
    return;
  }
  CHECK(bound >= static_cast<double>(literal));
  // Budgets beyond 1 are rounded up on purpose, so that 0 * inf never occurs.
  if (budget < 0.5L) CHECK(bound <= static_cast<double>(literal * (1 + rounding)));
}

}  // namespace

TEST_CASE("the bound is the document's, read literally, for every preset and variant") {
  for (const auto& name : kContracts) {
    const Contract contract = read_contract(name, Spec{});
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      auto fixture = test::random_row(seed, {.with_mask = seed % 5 != 0});
      if (seed % 4 == 1) fixture.put_behind(5);
      if (contract.partials.count > 1) give_ring(fixture, seed);
      CAPTURE(name, seed);
      const RowBound bound = fixture.bound(contract);
      if (!bound.not_applicable.empty()) continue;
      const auto literal = test::literal_bound(contract, fixture);
      for (std::size_t c = 0; c < bound.out.size(); ++c) {
        CAPTURE(c);
        check_agrees(bound.out[c], literal.out[c], literal.largest_budget);
      }
      check_agrees(bound.lse, literal.lse, literal.largest_budget);
      check_agrees(bound.functional, literal.functional, literal.largest_budget);
    }
  }
}

TEST_CASE("a denominator of cast probabilities loses what the cast flushes to zero") {
  // Beside a sink at the maximum all keys are below half the smallest number of fp8: the kernel
  // adds up zeros, and its LSE is the sink.
  for (const double below : {-13.0, -12.5, -14.0}) {
    test::RowFixture fixture(36, 16, 1);
    fixture.row.dot.assign(36, below);
    fixture.row.abs_dot.assign(36, -below);
    fixture.row.has_sink = true;
    fixture.row.sink = 0;
    fixture.values.assign(36, 1);
    fixture.finish();
    CHECK(256 * std::exp(below) < 0x1p-10);
    const RowBound bound = fixture.bound(read_contract("fp8-e4m3-flash+sumcast", Spec{}));
    CHECK(bound.lse >= fixture.row.lse.hi);
    CHECK(bound.lse < 2 * fixture.row.lse.hi);
    // A P that is added up before the cast loses nothing.
    CHECK(fixture.bound(read_contract("fp8-e4m3-flash", Spec{})).lse < 0.5 * fixture.row.lse.hi);
  }
}

TEST_CASE("partials that lose much to underflow are bounded as the document says") {
  // Where underflow makes up most of a bound, the product exceeds the page by less than 2^-24.
  const Contract contract =
      read_contract(R"({"base":"fp32-decode3","softmax":{"exp_eta":"0x1p-20"},)"
                    R"("l":{"eta":"0x1p-20"},"lse":{"log_rel":"0x1p-8"}})",
                    Spec{});
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto fixture = test::random_row(seed);
    const RowBound bound = fixture.bound(contract);
    if (!bound.not_applicable.empty()) continue;
    const auto literal = test::literal_bound(contract, fixture);
    CAPTURE(seed);
    for (std::size_t c = 0; c < bound.out.size(); ++c) {
      check_agrees(bound.out[c], literal.out[c], literal.largest_budget, 0x1p-24L);
    }
    check_agrees(bound.lse, literal.lse, literal.largest_budget, 0x1p-24L);
  }
}

TEST_CASE("keys whose weight squared is no number still lose what (20c) says") {
  // The heavy key has the value 0, so that nothing of its size hides what the light one loses.
  test::RowFixture fixture(2, 16, 1);
  fixture.row.dot = fixture.row.abs_dot = {0, -690};
  fixture.values = {0, 1};
  fixture.finish();
  const Contract contract =
      read_contract(R"({"base":"fp32-ring2","partials":{"merge":["lse_sequential"],"eta":0},)"
                    R"("softmax":{"exp_eta":0},"pv":{"eta":0},"l":{"eta":0}})",
                    Spec{});
  const RowBound bound = fixture.bound(contract);
  const auto literal = test::literal_bound(contract, fixture);
  CHECK(literal.out[0] > 0x1p-1000L);
  check_agrees(bound.out[0], literal.out[0], literal.largest_budget);
}

TEST_CASE("a key below the maximum whose score is less known may hold the largest of all factors") {
  // (16): its distance below the maximum is stretched by the temperature as well, towards less.
  const Contract contract =
      read_contract(R"({"base":"fp32-ring2","partials":{"merge":["lse_sequential"]},)"
                    R"("score":{"scale_const_u":"0x1p-6"},)"
                    R"("softmax":{"u":"0x1p-8","exp_eta":"0x1p-20"}})",
                    Spec{});
  for (int n = 0; n < 200; ++n) {
    test::RowFixture fixture(2, 16, 1);
    fixture.row.dot = {0, -0.001 * n};
    fixture.row.abs_dot = {0, 1e5};
    fixture.values = {0, 1};
    fixture.finish();
    const RowBound bound = fixture.bound(contract);
    REQUIRE(bound.not_applicable.empty());
    const auto literal = test::literal_bound(contract, fixture);
    CAPTURE(n);
    CHECK(literal.largest_budget < 0.5L);
    check_agrees(bound.out[0], literal.out[0], literal.largest_budget, 0x1p-24L);
  }
}
