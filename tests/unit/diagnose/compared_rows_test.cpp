// Long cases: mistakes are compared on a sample of rows that holds refused ones.
#include "oracle/diagnose/compared_rows.hpp"

#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr std::int64_t kRows = 6000;
constexpr Sizes kLong{.batches = 1,
                      .heads = 1,
                      .kv_heads = 1,
                      .queries = kRows,
                      .keys = 16,
                      .head_dim = 2,
                      .value_dim = 2};

/// A field in which the given rows are refused.
ErrorField field_with(const std::vector<std::int64_t>& refused) {
  ErrorField field;
  field.columns = 1;
  field.out.resize(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) field.rows.push_back({0, 0, i});
  for (const std::int64_t i : refused) field.out[static_cast<std::size_t>(i)].refused = true;
  return field;
}

}  // namespace

TEST_CASE("of a long case as many rows are compared as are affordable, all refused ones first") {
  const Case input = random_case(DType::f32, kLong, 3).assemble();
  const ErrorField field = field_with({3, 2000, 5999});
  const std::int64_t most = most_compared_rows(input.problem);
  REQUIRE(most < kRows);
  const ComparedRows compared = compared_rows(input.problem, RowSet(input.problem), 0, {{0, 0, 11}},
                                              [&]() -> const ErrorField& { return field; });
  CHECK(compared.sampled());
  CHECK(compared.refused == 3);
  std::set<std::int64_t> numbers, residues;
  for (const Row& row : compared.rows) {
    numbers.insert(row.i);
    residues.insert(row.i % 64);
  }
  for (const std::int64_t i : {3, 11, 2000, 5999}) CHECK(numbers.count(i) == 1);
  CHECK(numbers.size() == compared.rows.size());
  CHECK(std::abs(static_cast<std::int64_t>(numbers.size()) - most) <= 4);
  CHECK(residues.size() == 64);
}

TEST_CASE("of a short case every row is compared, and nobody asks where it is refused") {
  Sizes sizes = kLong;
  sizes.queries = 100;
  const Case input = random_case(DType::f32, sizes, 3).assemble();
  const auto never = []() -> const ErrorField& { throw std::logic_error("not needed"); };
  const ComparedRows compared =
      compared_rows(input.problem, RowSet(input.problem), 0, {{0, 0, 1}}, never);
  CHECK(compared.rows.size() == 100);
  CHECK_FALSE(compared.sampled());
}

TEST_CASE("an explanation of a long case says on how many rows it holds") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kLong, DType::f32);
  for (std::int64_t n = 0; n < 2 * kRows; ++n) {
    set_value(builder, "out", n, 2 * value_at(builder, "out", n));
  }
  const Diagnosed result = explain(builder, "fp32");
  CHECK(result.ids().count("GAIN") == 1);
  REQUIRE(result.diagnosis.sample);
  const Diagnosis::Sample& sample = *result.diagnosis.sample;
  CHECK(sample.judged == kRows);
  CHECK(sample.rows < kRows);
  CHECK(sample.refused > sample.rows / 2);
  for (const Explanation& one : result.diagnosis.explanations) {
    CHECK(one.elements == 3 * sample.rows);  // two columns and the LSE
  }
}

TEST_CASE("rows are judged once each, in every answer that is asked for") {
  CaseBuilder builder = plain_case(
      R"({"version": 1})",
      {.batches = 2, .heads = 2, .queries = 40, .keys = 6, .head_dim = 2, .value_dim = 2},
      DType::bf16);
  const std::vector<Row> some{{0, 1, 5}, {1, 1, 5}, {0, 1, 5}, {1, 0, 39}, {0, 0, 0}};
  std::int64_t elements = 0;
  const auto verdict = [&](const std::vector<AnswerKind>& kinds, const std::vector<Row>& rows) {
    const Case input = builder.assemble();
    return judge_rows(input, read_contract("bf16-io", input.problem.spec), {}, kinds, rows,
                      elements);
  };
  CHECK(verdict({AnswerKind::out, AnswerKind::lse}, some) == Verdict::pass);
  CHECK(elements == 4 * (2 + 1));
  CHECK(verdict({AnswerKind::out}, {{1, 1, 5}}) == Verdict::pass);
  CHECK(elements == 2);
  set_value(builder, "out", ((1 * 2 + 1) * 40 + 5) * 2, 7);
  CHECK(verdict({AnswerKind::out}, some) == Verdict::fail);
  CHECK(verdict({AnswerKind::lse}, some) == Verdict::pass);
  CHECK(verdict({AnswerKind::out, AnswerKind::lse}, some) == Verdict::fail);
  CHECK(verdict({AnswerKind::lse, AnswerKind::out}, some) == Verdict::fail);
  CHECK(verdict({AnswerKind::out}, {{0, 1, 5}, {1, 0, 5}}) == Verdict::pass);
}
