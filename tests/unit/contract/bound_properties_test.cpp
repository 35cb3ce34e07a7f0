// What must hold between the bounds of different contracts and rows, whatever the formulas are.
#include <hwy/targets.h>

#include <string>

#include "oracle/contract/key_formulas.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/contract/literal.hpp"
#include "tests/unit/contract/random_row.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

/// Every bound of `loose` is at least that of `strict`, on many rows.
void check_looser(const std::string& strict, const std::string& loose) {
  const Contract narrow = read_contract(strict, Spec{}), wide = read_contract(loose, Spec{});
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const auto fixture = test::random_row(seed);
    const RowBound a = fixture.bound(narrow), b = fixture.bound(wide);
    if (!a.not_applicable.empty() || !b.not_applicable.empty()) continue;
    CAPTURE(strict, loose, seed);
    for (std::size_t c = 0; c < a.out.size(); ++c) CHECK(a.out[c] <= b.out[c]);
    CHECK(a.lse <= b.lse);
    CHECK(a.power.missing_mass_lse <= b.power.missing_mass_lse);
  }
}

std::string changed(const std::string& base, const std::string& fields) {
  return R"({"base":")" + base + R"(",)" + fields + "}";
}

}  // namespace

TEST_CASE("a looser declaration never gives a smaller bound") {
  check_looser("fp32", changed("fp32", R"("softmax":{"u":"0x1p-20"})"));
  check_looser("fp32", changed("fp32", R"("softmax":{"exp_rel":"0x1p-13"})"));
  check_looser("fp32", changed("fp32", R"("softmax":{"exp_eta":"0x1p-60"})"));
  check_looser("fp32", changed("fp32", R"("score":{"scale_roundings":3})"));
  check_looser("fp32", changed("fp32", R"("score":{"scale_const_u":"0x1p-12"})"));
  check_looser("fp32", changed("fp32", R"("score":{"store":["0x1p-11"],"store_eta":"0x1p-25"})"));
  check_looser("fp32", changed("fp32", R"("score":{"bias_roundings":5,"sink_roundings":5})"));
  check_looser("fp32", changed("fp32", R"("score":{"softcap":{"tanh_rel":"0x1p-10"}})"));
  check_looser("fp32", changed("fp32", R"("score":{"eta":"0x1p-100"})"));
  check_looser("fp32", changed("fp32", R"("inputs":{"load_u":"0x1p-11"})"));
  check_looser("fp32", changed("fp32", R"("inputs":{"load_u_v":"0x1p-11"})"));
  check_looser("fp32", changed("fp32", R"("p":{"u":"0x1p-11"})"));
  check_looser("fp32", changed("fp32", R"("finish":{"roundings":4})"));
  check_looser("fp32", changed("fp32", R"("lse":{"log_abs":"0x1p-10","log_rel":"0x1p-10"})"));
  check_looser("fp32", changed("fp32", R"("lse":{"u":"0x1p-10","max_roundings":4})"));
  check_looser("fp32", changed("fp32", R"("l":{"u":"0x1p-12"},"pv":{"u":"0x1p-12"})"));
  check_looser("fp32", changed("fp32", R"("l":{"eta":"0x1p-100"},"pv":{"eta":"0x1p-100"})"));
  check_looser(changed("fp32", R"("p":{"normalized":false})"), "fp32");
  check_looser("fp32+block8", "fp32");
  check_looser("fp32+asc", "fp32");
  check_looser("fp32", "fp32-gpu");
  check_looser("bf16-flash", changed("bf16-flash", R"("softmax":{"exp_rel":"0x1p-13"})"));
  check_looser(changed("bf16-flash", R"("p":{"round":"rn"})"),
               changed("bf16-flash", R"("p":{"round":"faithful"})"));
  check_looser("bf16-eager", "bf16-unfused");
  check_looser("bf16-flash",
               changed("bf16-flash", R"("softmax":{"rescale":"lazy","lazy_log2":8})"));
}

TEST_CASE("merging and its roundings never make a bound smaller") {
  check_looser("bf16-flash", "bf16-split2");
  check_looser("bf16-flash", "bf16-decode2");
  check_looser("bf16-split2", "bf16-split8");
  check_looser("bf16-decode2", "bf16-decode8");
  check_looser("bf16-ring4", "bf16-ring4-lowp");
  check_looser("bf16-ring4", "bf16-ring8");
  check_looser("bf16-split4", "bf16-ring4");  // the ring's list holds the split's merge
  check_looser("bf16-ring4-lowp+run32", "bf16-ring4-lowp");
  check_looser("fp32-ring2+sigmoid", "fp32-ring4+sigmoid");
  check_looser("bf16-split4+keys4", "bf16-split4");
}

TEST_CASE("a known partition never makes a bound larger") {
  for (const char* name : {"bf16-ring4", "bf16-ring4-lowp", "fp32-ring3"}) {
    const Contract contract = read_contract(name, Spec{});
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      auto fixture = test::random_row(seed);
      const RowBound unknown = fixture.bound(contract);
      fixture.problem.spec.ring = Ring{RingLayout::contiguous, RingOrder::down};
      const RowBound known = fixture.bound(contract);
      for (std::size_t c = 0; c < known.out.size(); ++c) CHECK(known.out[c] <= unknown.out[c]);
    }
  }
}

TEST_CASE("what is invisible has no part in a bound") {
  const Contract contract = read_contract("bf16-flash", Spec{});
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto fixture = test::random_row(seed);
    const RowBound before = fixture.bound(contract, true);
    const auto columns = static_cast<std::size_t>(fixture.problem.value_dim);
    for (std::size_t j = 0; j < fixture.row.score.size(); ++j) {
      if (fixture.row.score[j] != -INFINITY) continue;
      fixture.row.dot[j] = fixture.row.abs_dot[j] = NAN;
      for (std::size_t c = 0; c < columns; ++c) fixture.values[j * columns + c] = NAN;
    }
    const RowBound after = fixture.bound(contract, true);
    CHECK(after.out == before.out);
    CHECK(after.lse == before.lse);
    CHECK(after.functional == before.functional);
    CHECK(after.power.gain == before.power.gain);
  }
}

TEST_CASE("scores just above and just below a multiple of ln 2 are equally near it") {
  const double ln2 = std::log(2.0);
  for (const int octaves : {0, 1, 7, 40}) {
    for (const double off : {-0.3, -1e-6, 0.0, 1e-6, 0.3}) {
      const double score = 5 - octaves * ln2 + off;
      CHECK(std::abs(dyadic_distance(score, 5) - std::abs(off)) <= 0x1p-40);
    }
  }
}

TEST_CASE("finite masks leave the bound finite") {
  // A bias of -1e9 has an error of about 60: with maxima instead of per-key budgets the bound would
  // be e^60 times too large.
  for (const char* name : {"fp32", "bf16-flash", "bf16-eager", "bf16-ring4", "bf16-decode4"}) {
    auto fixture =
        test::random_row(4, {.with_sink = false, .with_softcap = false, .with_bias = false});
    fixture.row.bias.assign(fixture.row.dot.size(), 0.0);
    for (std::size_t j = 1; j < fixture.row.bias.size(); j += 2) fixture.row.bias[j] = -1e9;
    fixture.finish();
    const RowBound bound = fixture.bound(read_contract(name, Spec{}));
    CAPTURE(name, bound.not_applicable);
    REQUIRE(bound.not_applicable.empty());
    for (const double e : bound.out) CHECK(e < 1);
    CHECK(bound.lse < 1);
  }
}

TEST_CASE("a row that sees only a sink is a row with one key of value zero") {
  test::RowFixture fixture(4, 16, 3);
  for (std::int64_t j = 0; j < 4; ++j) fixture.hide(j);
  fixture.row.has_sink = true;
  fixture.row.sink = 2.5;
  fixture.finish();
  const RowBound bound = fixture.bound(read_contract("bf16-flash", Spec{}), true);
  CHECK(bound.not_applicable.empty());
  for (const double e : bound.out) CHECK(e < 0x1p-100);
  CHECK(bound.lse > 0);
  CHECK(bound.lse < 0x1p-16);
}

TEST_CASE("an empty row is decided by table") {
  test::RowFixture fixture(4, 16, 3);
  for (std::int64_t j = 0; j < 4; ++j) fixture.hide(j);
  fixture.finish();
  const RowBound bound = fixture.bound(read_contract("fp32", Spec{}));
  CHECK(bound.not_applicable.empty());
  CHECK(bound.out == std::vector<double>(3, 0.0));
  CHECK(bound.lse == 0);
}

TEST_CASE("a row on which a format may overflow is not judged") {
  const auto reason = [](const std::string& contract, auto change) {
    test::RowFixture fixture(4, 16, 1);
    fixture.problem.spec.scale = 0.5;
    fixture.values = {1, 2, 3, 4};
    change(fixture);
    fixture.finish();
    return fixture.bound(read_contract(contract, Spec{})).not_applicable;
  };
  const auto large_dot = [](double abs_dot) {
    return [abs_dot](test::RowFixture& f) { f.row.abs_dot[1] = abs_dot; };
  };
  // The unscaled product sum counts: half of it is in the row.
  CHECK(reason("fp16-eager", large_dot(32000)).empty());
  CHECK(reason("fp16-eager", large_dot(33000)).find("H1") == 0);
  CHECK(reason("fp16-flash", large_dot(33000)).empty());  // its scores stay in fp32
  CHECK(reason("bf16-eager", large_dot(33000)).empty());
  CHECK(reason("fp32", large_dot(2e38)).find("H1") == 0);
  CHECK(reason("fp64", large_dot(2e38)).empty());
  const auto large_values = [](test::RowFixture& f) { f.values = {1e38, 1e38, 1e38, 1e38}; };
  CHECK(reason("fp32", large_values).find("H1") == 0);
  CHECK(reason("fp64", large_values).empty());
  CHECK(reason(R"({"base":"fp8-e4m3-flash","p":{"scale":512}})", [](test::RowFixture&) {
        }).find("H1") == 0);
  CHECK(reason("fp8-e4m3-flash", [](test::RowFixture&) {}).empty());
}

TEST_CASE("the truth's reason for not judging a row is passed on") {
  auto fixture = test::random_row(1);
  fixture.row.not_applicable = "a visible value is not finite";
  CHECK(fixture.bound(read_contract("fp32", Spec{})).not_applicable ==
        "a visible value is not finite");
}

TEST_CASE("every vector target of this machine gives the same bounds") {
  for (const char* name : {"fp32", "bf16-flash", "bf16-ring4"}) {
    const Contract contract = read_contract(name, Spec{});
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      auto fixture = test::random_row(seed);
      fixture.problem.spec.ring = Ring{};
      const RowBound reference = fixture.bound(contract, true);
      for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        const RowBound bound = fixture.bound(contract, true);
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        CAPTURE(name, seed, targets);
        const auto close = [](double a, double b) {
          return a == b || std::abs(a - b) <= 0x1p-40 * std::abs(b);
        };
        for (std::size_t c = 0; c < bound.out.size(); ++c)
          CHECK(close(bound.out[c], reference.out[c]));
        CHECK(close(bound.lse, reference.lse));
        CHECK(close(bound.functional, reference.functional));
      }
    }
  }
}

TEST_CASE("what pads a row has no weight, however little is known of its keys") {
  // Budgets beyond 1, where the product takes e^x for e^x - 1: no more than half again.
  const Contract contract = read_contract(R"({"base":"fp32","l":{"u":"0x1p-1"}})", Spec{});
  std::int64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto fixture = test::random_row(seed);
    const RowBound bound = fixture.bound(contract);
    if (!bound.not_applicable.empty()) continue;
    const auto literal = test::literal_bound(contract, fixture);
    if (literal.largest_budget < 1) continue;
    CAPTURE(seed);
    for (std::size_t c = 0; c < bound.out.size(); ++c, ++compared) {
      CHECK(bound.out[c] <= 1.5L * literal.out[c]);
    }
    CHECK(bound.lse <= 1.5L * literal.lse);
  }
  CHECK(compared > 100);
}
