// One row at a time, at the places where its judgement turns: a functional whose truth is a ball, a
// sum that overflows, a bound that holds zero, an answer that needs more digits.
#include "oracle/judge/row_judge.hpp"

#include <cmath>
#include <limits>

#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

/// The tally of the first row of a case, whose truth `change` may spoil.
template <class Change>
Tally tally_of_first_row(const CaseBuilder& builder, const std::string& name,
                         const Change& change) {
  const Case input = builder.assemble();
  const Contract contract = read_contract(name, input.problem.spec);
  JudgeRules rules{.problem = &input.problem,
                   .contract = &contract,
                   .out = &input.find(AnswerKind::out)->tensor,
                   .out_rule = output_rule(contract, contract.out.dtype)};
  const HeadTruth head(input.problem, 0, 0, Precision::fast);
  RowTruth row;
  interval_row(input.problem, 0, 0, 0, 300, row);
  change(row);
  return RowJudge(rules).evaluate(head, row, false);
}

}  // namespace

TEST_CASE("a functional is measured from both words of the truth") {
  CaseBuilder builder = random_case(DType::f64, {.heads = 1, .queries = 1, .value_dim = 1});
  answer(builder, DType::f64, DType::f64);
  double error = 0;
  const Tally tally = tally_of_first_row(builder, "fp64", [&](const RowTruth& row) {
    error = std::abs((value_at(builder, "out", 0) - row.out[0].hi) - row.out[0].lo);
  });
  REQUIRE(error > 0);  // the answer is the truth rounded
  CHECK(tally.out.worst_functional->value == error);
}

TEST_CASE("a functional passes, fails or stays open as its whole ball does") {
  CaseBuilder builder = random_case(DType::f32, {.heads = 1, .queries = 1, .value_dim = 1});
  answer(builder, DType::f32);
  const auto decided = [&](double radius) {
    const Tally tally =
        tally_of_first_row(builder, "fp32", [&](RowTruth& row) { row.out[0].radius = radius; });
    return tally.out.worst_functional->decision;
  };
  CHECK(decided(0) == Decision::pass);
  CHECK(decided(1) == Decision::unsure);
  const double right = value_at(builder, "out", 0);
  set_value(builder, "out", 0, right + 4);
  CHECK(decided(1) == Decision::fail);
  CHECK(decided(8) == Decision::unsure);
}

TEST_CASE("where a row may be stored as infinity its elements alone are judged") {
  // All values are the largest of fp16, and so is their mean; a rounding more of it is infinite.
  CaseBuilder builder = random_case(DType::f16, {.heads = 1, .queries = 1, .value_dim = 4});
  builder.set("v", make_tensor(DType::f16, {1, 1, 9, 4}, [](std::int64_t) { return 65504; }));
  answer(builder, DType::f16);
  for (const double stored : {65504.0, std::numeric_limits<double>::infinity()}) {
    OwnedTensor& out = *builder.find("out");
    encode(DType::f16, stored, out.bytes.data());
    const Report report = judge(builder, "fp16-flash");
    INFO(stored);
    CHECK(report.verdict == Verdict::pass);
    CHECK(report.find(AnswerKind::out)->tally.elements == 4);
    CHECK_FALSE(report.find(AnswerKind::out)->tally.worst_functional.has_value());
  }
}

TEST_CASE("bounds that would accept an LSE of zero everywhere are no PASS") {
  // One key with a score of 2^-9, which is the LSE as well.
  CaseBuilder builder = random_case(DType::f32, {.keys = 1, .head_dim = 1});
  builder.set("q", make_tensor(DType::f32, {1, 2, 7, 1}, [](std::int64_t) { return 1; }));
  builder.set("k", make_tensor(DType::f32, {1, 1, 1, 1}, [](std::int64_t) { return 0x1p-9; }));
  answer(builder, DType::f32);
  const Report report = judge(builder, R"({"base": "fp32", "lse": {"log_abs": "0x1p-8"}})");
  const AnswerReport& lse = *report.find(AnswerKind::lse);
  CHECK(lse.tally.zeros.differ == 2 * 7);
  CHECK(lse.tally.zeros.pass == 2 * 7);
  CHECK(lse.verdict == Verdict::undecided);
  CHECK(contains(lse.reason, "no power"));
  CHECK(judge(builder, "fp32").find(AnswerKind::lse)->tally.zeros.pass == 0);
}

TEST_CASE("an answer is decided by as many digits as it needs") {
  // Scores 0 and -140: the LSE is ln(1 + e^-140), about 2^-202. Its bound below zero lies outside
  // by as much. The LSE of the second query is not nearly zero.
  CaseBuilder builder;
  builder.set("q", make_tensor(DType::f32, {1, 1, 2, 1},
                               [](std::int64_t n) { return n == 0 ? 1.0 : -1.0; }));
  builder.set("k", make_tensor(DType::f32, {1, 1, 2, 1},
                               [](std::int64_t n) { return n == 0 ? 0.0 : -140.0; }));
  builder.set("v", make_tensor(DType::f32, {1, 1, 2, 1}, [](std::int64_t) { return 1.0; }));
  answer(builder, DType::f32, DType::f64);
  builder.erase("out");
  REQUIRE(value_at(builder, "lse", 0) > 0);
  REQUIRE(value_at(builder, "lse", 0) < 0x1p-200);
  const Report right = judge(builder, "fp32");
  CHECK(right.verdict == Verdict::pass);
  const Box box = boxes_of(builder, "fp32", 0, 0).lse;
  set_value(builder, "lse", 0, box.high);
  CHECK(judge(builder, "fp32").verdict == Verdict::pass);
  set_value(builder, "lse", 0, -box.high);
  REQUIRE(std::nextafter(-box.high, 1.0) == box.low);
  const Report outside = judge(builder, "fp32");
  CHECK(outside.verdict == Verdict::fail);
  CHECK(outside.escalated == 1);
  CHECK(outside.bits == 256);
}

TEST_CASE("a row whose truth no number of digits certifies is left open, and says so") {
  // Two sums of 2^2040, 2^-1000 and -2^2040 that cancel, under a scale that makes the rest of them
  // too much in 2048 digits.
  const double big = 0x1p1020, of_q[] = {big, 1, big, big, 1, big},
               of_k[] = {big, 0x1p-1000, -big, -big, -0x1p-1000, big};
  CaseBuilder builder;
  builder.set("q", make_tensor(DType::f64, {1, 1, 1, 6}, [&](std::int64_t n) { return of_q[n]; }));
  builder.set("k", make_tensor(DType::f64, {1, 1, 2, 6},
                               [&](std::int64_t n) { return n < 6 ? of_k[n] : 0.0; }));
  builder.set("v", make_tensor(DType::f64, {1, 1, 2, 2}, [](std::int64_t n) { return n; }));
  builder.set("out", make_tensor(DType::f64, {1, 1, 1, 2}, [](std::int64_t n) { return n; }));
  builder.set("lse", make_tensor(DType::f64, {1, 1, 1}, [](std::int64_t) { return 0; }));
  builder.spec = R"({"version": 1, "scale": 1e300})";
  const Report report = judge(builder, "fp64");
  CHECK(report.verdict == Verdict::undecided);
  CHECK(report.bits == 2048);
  CHECK(report.find(AnswerKind::out)->tally.rows == 1);
  CHECK(report.find(AnswerKind::out)->tally.undecided == 2);
  CHECK(report.find(AnswerKind::lse)->tally.undecided == 1);
  REQUIRE(report.find(AnswerKind::out)->tally.worst_element.has_value());
  CHECK(std::isnan(report.find(AnswerKind::out)->tally.worst_element->exact));
}
