// Whole cases: what passes, what fails and exactly where, and what is neither.
#include "oracle/judge/check.hpp"

#include <cmath>
#include <limits>

#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the correctly rounded truth passes under every kind of contract") {
  struct Kind {
    DType inputs, out;
    const char* contract;
  };
  for (const Kind& kind : {Kind{DType::f32, DType::f32, "fp32"},
                           {DType::bf16, DType::bf16, "bf16-flash"},
                           {DType::f16, DType::f16, "fp16-flash"},
                           {DType::f32, DType::f32, "fp32-ring3"},
                           {DType::bf16, DType::bf16, "bf16-ring2-lowp"},
                           {DType::f64, DType::f64, "fp64"}}) {
    CaseBuilder builder = random_case(kind.inputs);
    answer(builder, kind.out, kind.inputs == DType::f64 ? DType::f64 : DType::f32);
    const Report report = judge(builder, kind.contract);
    INFO(kind.contract);
    CHECK(report.verdict == Verdict::pass);
    REQUIRE(report.answers.size() == 2);
    CHECK(report.answers[0].tally.elements == 2 * 7 * 3);
    CHECK(report.answers[1].tally.elements == 2 * 7);
    CHECK(report.answers[0].tally.worst_element->error_over_bound <= 1);
    CHECK(std::isfinite(report.power.gain));
    CHECK(report.power.missing_mass_lse < 1);
  }
}

TEST_CASE("the verdict of out flips exactly at the bound") {
  for (const char* contract : {"fp32", "bf16-flash", "fp16-flash", "fp32-ring4", "bf16-eager"}) {
    const DType type = read_contract(contract, Spec{}).inputs.dtype;
    // One column, so that the functional test says what the element says.
    CaseBuilder builder = random_case(type, {.value_dim = 1});
    answer(builder, type);
    const std::int64_t h = 1, i = 4, n = h * 7 + i;
    const Box box = boxes_of(builder, contract, h, i).out[0];
    INFO(contract << " box " << box.low << " " << box.high);
    const auto verdict_with = [&](double value) {
      set_value(builder, "out", n, value);
      return judge(builder, contract).verdict;
    };
    CHECK(verdict_with(box.high) == Verdict::pass);
    CHECK(verdict_with(round_up(type, std::nextafter(box.high, kInfinity))) == Verdict::fail);
    CHECK(verdict_with(box.low) == Verdict::pass);
    CHECK(verdict_with(round_down(type, std::nextafter(box.low, -kInfinity))) == Verdict::fail);
  }
}

TEST_CASE("the verdict of the LSE flips exactly at the bound, in either base") {
  for (const char* base : {"e", "2"}) {
    CaseBuilder builder = random_case(DType::f32);
    builder.spec = std::string(R"({"version": 1, "lse_base": ")") + base + "\"}";
    answer(builder, DType::f32);
    const Box box = boxes_of(builder, "fp32", 0, 2).lse;
    const auto verdict_with = [&](double value) {
      set_value(builder, "lse", 2, value);
      return judge(builder, "fp32").verdict;
    };
    const double inside_low = round_up(DType::f32, box.low);
    const double inside_high = round_down(DType::f32, box.high);
    CHECK(verdict_with(inside_high) == Verdict::pass);
    CHECK(verdict_with(round_up(DType::f32, std::nextafter(inside_high, kInfinity))) ==
          Verdict::fail);
    CHECK(verdict_with(inside_low) == Verdict::pass);
    CHECK(verdict_with(round_down(DType::f32, std::nextafter(inside_low, -kInfinity))) ==
          Verdict::fail);
  }
}

TEST_CASE("a natural LSE is refused where base 2 is declared") {
  CaseBuilder builder = random_case(DType::f32);
  answer(builder, DType::f32);
  CHECK(judge(builder, "fp32").verdict == Verdict::pass);
  builder.spec = R"({"version": 1, "lse_base": "2"})";
  const Report report = judge(builder, "fp32");
  CHECK(report.find(AnswerKind::out)->verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::lse)->verdict == Verdict::fail);
}

TEST_CASE("an LSE stored more narrowly than declared is judged in its storage type") {
  for (const DType stored : {DType::bf16, DType::f16}) {
    CaseBuilder builder = random_case(DType::f32);
    answer(builder, DType::f32, stored);
    CHECK(judge(builder, "fp32").verdict == Verdict::pass);
    const double value = value_at(builder, "lse", 3);
    set_value(builder, "lse", 3, round_up(stored, std::nextafter(value, kInfinity)));
    CHECK(judge(builder, "fp32").verdict == Verdict::fail);
  }
}

TEST_CASE("NaN and infinity never pass for a number") {
  for (const double wrong : {kNaN, kInfinity, -kInfinity}) {
    CaseBuilder builder = random_case(DType::f32);
    answer(builder, DType::f32);
    set_value(builder, "out", 5, wrong);
    CHECK(judge(builder, "fp32").verdict == Verdict::fail);
    answer(builder, DType::f32);
    set_value(builder, "lse", 5, wrong);
    CHECK(judge(builder, "fp32").verdict == Verdict::fail);
  }
}

TEST_CASE("a gain that no element shows is refused by the functional of its row") {
  // 32 columns: the functional is several times sharper than the elements.
  CaseBuilder builder = random_case(DType::bf16, {.keys = 64, .value_dim = 32});
  answer(builder, DType::bf16);
  const Report honest = judge(builder, "bf16-flash");
  REQUIRE(honest.verdict == Verdict::pass);
  REQUIRE(honest.find(AnswerKind::out)->tally.worst_functional.has_value());
  CHECK(honest.find(AnswerKind::out)->tally.worst_functional->error_over_bound() <= 1);
  // Push every element of a row to the end of its box away from zero: each alone is acceptable.
  const RowBoxes boxes = boxes_of(builder, "bf16-flash", 0, 3);
  for (std::int64_t c = 0; c < 32; ++c) {
    const Box& box = boxes.out[static_cast<std::size_t>(c)];
    set_value(builder, "out", 3 * 32 + c, box.low + box.high > 0 ? box.high : box.low);
  }
  const Report report = judge(builder, "bf16-flash");
  const TensorTally& tally = report.find(AnswerKind::out)->tally;
  CHECK(tally.failed == 0);
  CHECK(tally.functional_failed == 1);
  CHECK(report.verdict == Verdict::fail);
  CHECK(tally.worst_functional->row.i == 3);
}

TEST_CASE("outputs of another type than declared may all round the same way") {
  // Two equal weights. The last column is no number of fp16, so that bf16 is judged; the others
  // lie below the middle of two numbers of bf16, and one by one within the bounds.
  constexpr std::int64_t kColumns = 32;
  const double value = 1 + 0x1p-8 - 0x1p-10;
  CaseBuilder builder = random_case(DType::f16, {.queries = 1, .keys = 2, .value_dim = kColumns});
  builder.set("q", make_tensor(DType::f16, {1, 2, 1, 4}, [](std::int64_t) { return 0; }));
  builder.set("v", make_tensor(DType::f16, {1, 1, 2, kColumns}, [&](std::int64_t n) {
                if (n % kColumns < kColumns - 1) return value;
                return n < kColumns ? 0x1p-24 : 0.0;
              }));
  answer(builder, DType::bf16);
  REQUIRE(value_at(builder, "out", 0) == 1);
  const Report report = judge(builder, "fp16-flash");
  CHECK(report.verdict == Verdict::pass);
  const AnswerReport& out = *report.find(AnswerKind::out);
  CHECK(out.judged_type == DType::bf16);
  CHECK(std::abs(out.tally.worst_functional->value - (kColumns - 1) * (value - 1)) <= 0x1p-40);
}

TEST_CASE("an answer is judged in the contract's output type if that holds all its values") {
  CaseBuilder builder = random_case(DType::bf16);
  answer(builder, DType::bf16);
  CaseBuilder wide = builder;  // the same numbers stored in 32 bits
  wide.set("out", make_tensor(DType::f32, builder.find("out")->shape,
                              [&](std::int64_t n) { return value_at(builder, "out", n); }));
  const Report in_bf16 = judge(wide, "bf16-flash");
  CHECK(in_bf16.verdict == Verdict::pass);
  CHECK(in_bf16.find(AnswerKind::out)->judged_type == DType::bf16);
  answer(wide, DType::f32);
  const Report in_f32 = judge(wide, "bf16-flash");
  CHECK(in_f32.verdict == Verdict::pass);
  CHECK(in_f32.find(AnswerKind::out)->judged_type == DType::f32);
}

TEST_CASE("inputs that the contract cannot load are bad input by tensor and index") {
  CaseBuilder builder = random_case(DType::f32);
  answer(builder, DType::f32);
  CHECK(contains(refusal([&] { judge(builder, "bf16-flash"); }), "q [b 0, h 0, n 0, d 0]"));
  CHECK(judge(builder, "tf32-flash").verdict == Verdict::pass);  // re-rounds what it loads
  CaseBuilder bf16 = random_case(DType::bf16);
  answer(bf16, DType::bf16);
  bf16.set("v", make_tensor(DType::f32, {1, 1, 9, 3},
                            [](std::int64_t n) { return n == 7 ? 1 + 0x1p-10 : 1.0; }));
  CHECK(contains(refusal([&] { judge(bf16, "bf16-flash"); }), "v [b 0, h 0, n 2, d 1]"));
  CaseBuilder several = random_case(DType::bf16, {.batches = 2, .heads = 3});
  answer(several, DType::bf16);
  several.set("q", make_tensor(DType::f32, {2, 3, 7, 4}, [](std::int64_t n) {
                return n == ((1 * 3 + 2) * 7 + 5) * 4 + 3 ? 1 + 0x1p-10 : 1.0;
              }));
  CHECK(contains(refusal([&] { judge(several, "bf16-flash"); }), "q [b 1, h 2, n 5, d 3]"));
  // What a kernel rounds when it loads it may be any number.
  judge(several, R"({"base": "bf16-flash", "inputs": {"load_u": "0x1p-9"}})");
  // fp16 has more digits than bf16, but not its range.
  for (const double out_of_range : {0x1p20, 0x1p-30}) {
    CaseBuilder small = random_case(DType::bf16);
    set_value(small, "k", 5, out_of_range);
    answer(small, DType::bf16);
    CHECK(contains(refusal([&] { judge(small, "fp16-flash"); }), "k [b 0, h 0, n 1, d 1]"));
  }
}

TEST_CASE("only and require select answers") {
  CaseBuilder builder = random_case(DType::f32);
  answer(builder, DType::f32);
  set_value(builder, "lse", 0, 100);
  CheckOptions options;
  options.only = {AnswerKind::out};
  const Report selected = judge(builder, "fp32", options);
  CHECK(selected.verdict == Verdict::pass);
  builder.erase("lse");  // and what is not selected says nothing about the power
  CHECK(selected.power.missing_mass_lse == judge(builder, "fp32").power.missing_mass_lse);
  options.only = {AnswerKind::lse};
  CHECK(judge(builder, "fp32", options).verdict == Verdict::skipped);
  options.require = {AnswerKind::lse};
  CHECK(contains(refusal([&] { judge(builder, "fp32", options); }), "lse"));
  builder.erase("out");
  CHECK(judge(builder, "fp32").verdict == Verdict::skipped);
}

TEST_CASE("sampled rows are the same for a seed and find a fault only if they meet it") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 40});
  answer(builder, DType::f32);
  for (std::int64_t c = 0; c < 3; ++c) set_value(builder, "out", 17 * 3 + c, 50);
  CheckOptions options;
  options.rows = 20;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    options.seed = seed;
    const Report report = judge(builder, "fp32", options);
    CHECK(report.rows_judged == 20);
    CHECK(report.rows_total == 80);
    CHECK(judge(builder, "fp32", options).verdict == report.verdict);
    found += report.verdict == Verdict::fail;
  }
  CHECK(found > 0);
  CHECK(found < 40);  // a quarter of the rows each
  options.rows = 1000;
  CHECK(judge(builder, "fp32", options).rows_judged == 80);
}

TEST_CASE("bounds that would accept anything are no PASS") {
  CaseBuilder builder = random_case(DType::f32);
  answer(builder, DType::f32);
  const std::string loose =
      R"({"base": "fp32", "pv": {"acc": {"model": "any_order", "products": "rounded", )"
      R"("u": "0x1p-4"}}})";
  const Report report = judge(builder, loose);
  CHECK(report.find(AnswerKind::out)->verdict == Verdict::undecided);
  CHECK(contains(report.find(AnswerKind::out)->reason, "no power"));
  CHECK(report.find(AnswerKind::lse)->verdict == Verdict::pass);
  CHECK(report.verdict == Verdict::undecided);
}

TEST_CASE("elements and LSEs without a bound are counted, and neither judged nor passed") {
  CaseBuilder builder = random_case(DType::f32);
  answer(builder, DType::f32);
  set_value(builder, "lse", 0, 1e9);
  const Report report = judge(builder, R"({"base": "fp32", "softmax": {"exp_eta": "0x1p-1"}})");
  CHECK(report.verdict == Verdict::undecided);
  for (const AnswerKind kind : {AnswerKind::out, AnswerKind::lse}) {
    const TensorTally& tally = report.find(kind)->tally;
    CHECK(tally.elements == 0);
    CHECK(tally.failed == 0);
    CHECK(tally.unbounded == 2 * 7 * (kind == AnswerKind::out ? 3 : 1));
    CHECK(contains(report.find(kind)->reason, "every bound is infinite"));
  }
}

TEST_CASE("a demanded power that is missing makes the verdict undecided") {
  CaseBuilder builder = random_case(DType::bf16, {.keys = 64});
  answer(builder, DType::bf16);
  CheckOptions options;
  options.power = 0.5;
  const Report enough = judge(builder, "bf16-flash", options);
  CHECK(enough.verdict == Verdict::pass);
  options.power = enough.power.gain / 2;
  CHECK(judge(builder, "bf16-flash", options).verdict == Verdict::undecided);
  options.power = enough.power.gain;
  CHECK(judge(builder, "bf16-flash", options).verdict == Verdict::pass);
}

TEST_CASE("a column that is exactly zero by the exact-sum lemma must be exactly zero") {
  // q = 0, so all weights are equal; integer values whose sum vanishes: the bound (26a) is 0.
  CaseBuilder builder = random_case(DType::bf16, {.keys = 8, .value_dim = 2});
  builder.set("q", make_tensor(DType::bf16, {1, 2, 7, 4}, [](std::int64_t) { return 0.0; }));
  builder.set("v", make_tensor(DType::bf16, {1, 1, 8, 2}, [](std::int64_t n) {
                return n % 2 == 0 ? 3.0 : (n / 2 % 2 == 0 ? 5.0 : -5.0);
              }));
  answer(builder, DType::bf16);
  CHECK(value_at(builder, "out", 1) == 0);
  CHECK(judge(builder, "bf16-flash").verdict == Verdict::pass);
  set_value(builder, "out", 1, 1e-30);
  CHECK(judge(builder, "bf16-flash").verdict == Verdict::fail);
}

TEST_CASE("verdict and report are the same for every number of threads") {
  CaseBuilder builder =
      random_case(DType::f32, {.batches = 2, .heads = 4, .kv_heads = 2, .queries = 33, .keys = 40});
  answer(builder, DType::f32);
  set_value(builder, "out", 100, 3.0);
  const auto with_threads = [&](int threads) {
    CheckOptions options;
    options.walk.threads = threads;
    return judge(builder, "fp32", options);
  };
  const Report one = with_threads(1);
  for (const int threads : {2, 3, 8, 40}) {
    const Report many = with_threads(threads);
    CHECK(many.verdict == one.verdict);
    REQUIRE(many.answers.size() == one.answers.size());
    for (std::size_t n = 0; n < one.answers.size(); ++n) {
      const TensorTally& a = one.answers[n].tally;
      const TensorTally& b = many.answers[n].tally;
      CHECK(a.failed == b.failed);
      CHECK(a.worst_element->column == b.worst_element->column);
      CHECK(a.worst_element->row.i == b.worst_element->row.i);
      CHECK(a.worst_element->error_over_bound == b.worst_element->error_over_bound);
    }
    CHECK(many.power.gain == one.power.gain);
    CHECK(many.power.missing_mass_out == one.power.missing_mass_out);
  }
}

TEST_CASE("verdicts are the same on every SIMD target and at every precision") {
  CaseBuilder good = random_case(DType::bf16, {.keys = 37});
  answer(good, DType::bf16);
  CaseBuilder bad = good;
  const Box box = boxes_of(good, "bf16-flash", 1, 6).out[2];
  set_value(bad, "out", 13 * 3 + 2, round_up(DType::bf16, std::nextafter(box.high, kInfinity)));
  for (const std::string& target : simd_targets()) {
    force_simd_target(target);
    INFO(target);
    CHECK(judge(good, "bf16-flash").verdict == Verdict::pass);
    const Report report = judge(bad, "bf16-flash");
    CHECK(report.verdict == Verdict::fail);
    CHECK(report.find(AnswerKind::out)->tally.failed == 1);
  }
  force_simd_target("");
  CheckOptions tight;
  tight.walk.precision = Precision::tight;
  CHECK(judge(good, "bf16-flash", tight).verdict == Verdict::pass);
  CHECK(judge(bad, "bf16-flash", tight).verdict == Verdict::fail);
  for (const unsigned bits : {64U, 200U}) {
    CheckOptions digits;
    digits.bits = bits;
    CHECK(judge(good, "bf16-flash", digits).verdict == Verdict::pass);
    CHECK(judge(bad, "bf16-flash", digits).verdict == Verdict::fail);
  }
}

TEST_CASE("a case without a query row is skipped, or without a key if keys alone are answered") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 0});
  builder.set("out", make_tensor(DType::f32, {1, 2, 0, 3}, [](std::int64_t) { return 0; }));
  CHECK(judge(builder, "fp32").verdict == Verdict::skipped);
  CaseBuilder keys = random_case(DType::f32, {.keys = 0});
  keys.set("dout", make_tensor(DType::f32, {1, 2, 7, 3}, [](std::int64_t) { return 1; }));
  keys.set("dv", make_tensor(DType::f32, {1, 1, 0, 3}, [](std::int64_t) { return 0; }));
  CHECK(judge(keys, "fp32").verdict == Verdict::skipped);
  keys.set("out", make_tensor(DType::f32, {1, 2, 7, 3}, [](std::int64_t) { return 0; }));
  const Report report = judge(keys, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::dv) == nullptr);
}
