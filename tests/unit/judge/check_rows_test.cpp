// Rows that no bound judges: empty ones, sinks alone, numbers that are not finite, sums that
// overflow.
#include <limits>

#include "oracle/judge/check.hpp"
#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("empty rows must hold what the spec says, and their LSE minus infinity") {
  const auto empty_case = [](const char* demanded) {
    CaseBuilder builder = random_case(DType::f32, {.queries = 6, .keys = 4});
    builder.spec = std::string(R"({"version": 1, "causal": "bottom_right", "empty_row": ")") +
                   demanded + "\"}";
    answer(builder, DType::f32);  // queries 0 and 1 see no key
    return builder;
  };
  CaseBuilder zero = empty_case("zero");
  CHECK(judge(zero, "fp32").verdict == Verdict::pass);
  set_value(zero, "out", 1, -0.0);
  CHECK(judge(zero, "fp32").verdict == Verdict::pass);
  for (const double wrong : {1e-40, kNaN}) {
    set_value(zero, "out", 1, wrong);
    CHECK(judge(zero, "fp32").verdict == Verdict::fail);
  }
  zero = empty_case("zero");
  for (const double wrong : {kNaN, 0.0, kInfinity, -1e30}) {
    set_value(zero, "lse", 1, wrong);
    CHECK(judge(zero, "fp32").find(AnswerKind::lse)->verdict == Verdict::fail);
  }
  CaseBuilder nan = empty_case("nan");
  CHECK(judge(nan, "fp32").verdict == Verdict::pass);
  set_value(nan, "out", 0, 0.0);
  CHECK(judge(nan, "fp32").verdict == Verdict::fail);
  CaseBuilder any = empty_case("any");
  set_value(any, "out", 0, 123.0);
  set_value(any, "lse", 1, kNaN);
  const Report report = judge(any, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::out)->tally.unconstrained == 4);  // two heads, two rows
}

TEST_CASE("rows of which nothing is demanded are not a PASS") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 2, .keys = 3});
  builder.spec = R"({"version": 1, "empty_row": "any"})";
  builder.set("key_lengths", make_list(DType::i32, {0}));
  answer(builder, DType::f32);
  CHECK(judge(builder, "fp32").verdict == Verdict::undecided);
}

TEST_CASE("a row that sees only a sink is zero, and its LSE is the sink") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 3, .keys = 3});
  builder.set("key_lengths", make_list(DType::i32, {0}));
  builder.set("sinks",
              make_tensor(DType::f32, {2}, [](std::int64_t n) { return n == 0 ? 1.5 : -2.0; }));
  answer(builder, DType::f32);
  CHECK(value_at(builder, "lse", 0) == 1.5);
  CHECK(judge(builder, "fp32").find(AnswerKind::lse)->verdict == Verdict::pass);
  set_value(builder, "out", 0, 1e-3);
  CHECK(judge(builder, "fp32").find(AnswerKind::out)->verdict == Verdict::fail);
  answer(builder, DType::f32);
  set_value(builder, "lse", 4, -2.001);
  CHECK(judge(builder, "fp32").find(AnswerKind::lse)->verdict == Verdict::fail);
}

TEST_CASE("what no query may see does not matter, whatever it holds") {
  for (const double poison : {kNaN, kInfinity, 3e38}) {
    CaseBuilder builder = random_case(DType::f32);
    builder.set("key_lengths", make_list(DType::i32, {5}));
    answer(builder, DType::f32);
    const CaseBuilder clean = builder;
    for (std::int64_t n = 5 * 4; n < 9 * 4; ++n) set_value(builder, "k", n, poison);
    for (std::int64_t n = 5 * 3; n < 9 * 3; ++n) set_value(builder, "v", n, poison);
    const Report report = judge(builder, "fp32"), expected = judge(clean, "fp32");
    CHECK(report.verdict == Verdict::pass);
    const Element& worst = *report.find(AnswerKind::out)->tally.worst_element;
    const Element& clean_worst = *expected.find(AnswerKind::out)->tally.worst_element;
    CHECK(worst.row.i == clean_worst.row.i);
    CHECK(worst.accepted.low == clean_worst.accepted.low);
    CHECK(worst.accepted.high == clean_worst.accepted.high);
  }
}

TEST_CASE(
    "a query that sees a number that is not finite is not applicable, the others are judged") {
  CaseBuilder builder = random_case(DType::f32);
  builder.spec = R"({"version": 1, "causal": "bottom_right"})";
  answer(builder, DType::f32);
  set_value(builder, "k", 8 * 4, kNaN);  // the last key: only the last query sees it
  Report report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::out)->tally.not_applicable == 2);
  CHECK(report.find(AnswerKind::out)->tally.rows == 2 * 6);
  set_value(builder, "k", 0, kNaN);  // the first key: all see it
  report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::undecided);
  CHECK(contains(report.answers[0].reason, "not applicable"));
}

TEST_CASE("a row whose scores may overflow is not applicable, never a PASS") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 1});
  answer(builder, DType::f32);
  for (std::int64_t n = 0; n < 8; ++n) set_value(builder, "q", n, 1e38);
  for (std::int64_t n = 0; n < 9 * 4; ++n) set_value(builder, "k", n, 1e10);
  const Report report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::undecided);
  CHECK(report.find(AnswerKind::out)->tally.not_applicable == 2);
}

TEST_CASE(
    "a scale whose scores overflow ends in the assumption that fails, not in lost precision") {
  for (const char* scale : {"1e40", "1e200", "1e300"}) {
    CaseBuilder builder = random_case(DType::f32, {.queries = 3});
    answer(builder, DType::f32);
    builder.spec = std::string(R"({"version": 1, "scale": )") + scale + "}";
    const Report report = judge(builder, "fp32");
    INFO(scale);
    CHECK(report.verdict == Verdict::undecided);
    for (const AnswerKind kind : {AnswerKind::out, AnswerKind::lse}) {
      CHECK(report.find(kind)->tally.not_applicable == 2 * 3);
      CHECK(report.find(kind)->tally.undecided == 0);
      CHECK(contains(report.find(kind)->reason, "H1: a score may overflow"));
    }
    CHECK(report.bits <= 128);
  }
}
