// Which rows of a case are judged, and that each of them is judged once: all of them, those at
// edges first, and as many as a budget of time allows.
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr std::int64_t kQueries = 70;

/// Three heads of 70 queries: more than one chunk, and more than one block of rows a chunk.
CaseBuilder many_rows() {
  CaseBuilder builder =
      random_case(DType::f32, {.heads = 3, .queries = kQueries, .keys = 6, .value_dim = 2});
  answer(builder, DType::f32);
  return builder;
}

}  // namespace

TEST_CASE("a wrong row is named, wherever in a chunk or a block of rows it lies") {
  const CaseBuilder right = many_rows();
  CHECK(judge(right, "fp32").find(AnswerKind::out)->tally.rows == 3 * kQueries);
  for (const std::int64_t row : {0, 5, 15, 16, 31, 32, 40, 69, 70, 71, 130, 209}) {
    CaseBuilder wrong = right;
    set_value(wrong, "out", 2 * row + 1, 50);
    const TensorTally tally = judge(wrong, "fp32").find(AnswerKind::out)->tally;
    INFO("row " << row);
    CHECK(tally.failed == 1);
    CHECK(tally.worst_element->row.h == row / kQueries);
    CHECK(tally.worst_element->row.i == row % kQueries);
    CHECK(tally.worst_element->column == 1);
  }
}

TEST_CASE("a budget that is spent ends after the first rows, a large one comes to every row once") {
  const CaseBuilder builder = many_rows();
  CheckOptions options;
  options.budget = 0;
  const Report first = judge(builder, "fp32", options);
  CHECK(first.rows_judged == 64);
  CHECK(first.find(AnswerKind::out)->tally.rows == 64);
  options.budget = 1000;
  const Report all = judge(builder, "fp32", options);
  CHECK(all.rows_judged == 3 * kQueries);
  CHECK(all.find(AnswerKind::out)->tally.rows == 3 * kQueries);
  CaseBuilder wrong = builder;
  for (std::int64_t n = 0; n < 2 * 3 * kQueries; n += 2) set_value(wrong, "out", n, 50);
  CHECK(judge(wrong, "fp32", options).find(AnswerKind::out)->tally.failed == 3 * kQueries);
}

TEST_CASE("so many rows at edges are judged in every answer that has rows of queries") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 30, .keys = 6});
  add_upstream(builder, DType::f32);
  answer(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  CheckOptions options;
  options.rows = 25;
  options.edges_first = true;
  const Report report = judge(builder, "fp32", options);
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::out)->tally.rows == 25);
  CHECK(report.find(AnswerKind::dq)->tally.rows == 25);  // found among the rows that dk needs
}
