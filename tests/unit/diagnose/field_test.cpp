// The kept truth of gradients, and the fields that it fills: every element at its own place, under
// its own bound.
#include "oracle/diagnose/gradient_field.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/diagnose/known_truth.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr Sizes kSizes{.batches = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .queries = 5,
                       .keys = 6,
                       .head_dim = 4,
                       .value_dim = 3};

CaseBuilder with_all(DType type) {
  CaseBuilder builder = random_case(type, kSizes);
  builder.spec = R"({"version": 1, "causal": "top_left"})";
  add_upstream(builder, type);
  answer(builder, type);
  answer_gradients(builder, type);
  return builder;
}

}  // namespace

TEST_CASE("a field of gradients has every element at its own place") {
  const CaseBuilder builder = with_all(DType::f32);
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const Report report = check(input, contract, {});
  const std::vector<GradientField> fields = gradient_fields(input, contract, {}, report);
  REQUIRE(fields.size() == 3);
  for (const GradientField& field : fields) {
    const Tensor& answer = input.find(field.kind)->tensor;
    CHECK(field.columns == answer.shape[3]);
    REQUIRE(static_cast<Index>(field.rows.size()) ==
            answer.shape[0] * answer.shape[1] * answer.shape[2]);
    for (std::size_t n = 0; n < field.rows.size(); ++n) {
      const Row& row = field.rows[n];
      CHECK(static_cast<Index>(n) == (row.b * answer.shape[1] + row.h) * answer.shape[2] + row.i);
      for (Index c = 0; c < field.columns; ++c) {
        const FieldElement& one = field.elements[n * static_cast<std::size_t>(field.columns) +
                                                 static_cast<std::size_t>(c)];
        CHECK(one.answer == answer.at(row.b, row.h, row.i, c));
        CHECK(std::abs(one.exact - one.answer) <= one.bound + std::ldexp(std::abs(one.exact), -24));
        CHECK_FALSE(one.refused);
      }
    }
  }
}

TEST_CASE("elements without a bound are left out, and gradients of which nothing is judged") {
  // So large a column of K leaves its column of dq without a bound; no score reads it.
  CaseBuilder builder = with_all(DType::f64);
  for (Index n = 0; n < 2 * 4 * 5; ++n) set_value(builder, "q", 4 * n, 0);
  for (Index n = 0; n < 2 * 2 * 6; ++n) set_value(builder, "k", 4 * n, 0x1p900);
  answer(builder, DType::f64);
  answer_gradients(builder, DType::f64);
  CheckOptions of_queries;
  of_queries.only = {AnswerKind::dq};
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp64", input.problem.spec);
  const Report report = check(input, contract, of_queries);
  REQUIRE(report.find(AnswerKind::dq)->tally.unbounded > 0);
  const std::vector<GradientField> fields = gradient_fields(input, contract, of_queries, report);
  REQUIRE(fields.size() == 1);
  Index known = 0, unknown = 0;
  double logarithms = 0;
  for (std::size_t n = 0; n < fields[0].elements.size(); ++n) {
    const FieldElement& one = fields[0].elements[n];
    const bool seen = !std::isnan(one.ratio);
    (seen ? known : unknown) += 1;
    if (n % 4 != 0) CHECK(seen);
    if (seen && one.bound > 0) logarithms += std::log(one.bound);
  }
  CHECK(unknown == report.find(AnswerKind::dq)->tally.unbounded);
  const KnownTruth truth(input, contract, of_queries, report);
  const Opinions opinions = truth.judge(contract, {AnswerKind::dq}, truth.all(), false);
  const Opinion& dq = opinions[static_cast<std::size_t>(AnswerKind::dq)];
  CHECK(dq.bounds <= known);
  CHECK(dq.bounds > known / 2);
  CHECK(std::abs(dq.log_bounds - logarithms) <= 0x1p-30 * std::abs(logarithms));

  for (Index n = 0; n < 2 * 4 * 5; ++n) set_value(builder, "q", 4 * n, HUGE_VAL);
  const Case blind = builder.assemble();
  const Report nothing = check(blind, contract, of_queries);
  CHECK(gradient_fields(blind, contract, of_queries, nothing).empty());
}

TEST_CASE("the kept truth holds dq, dk and dv, knows who sees a key, and samples as check() does") {
  CaseBuilder builder = with_all(DType::f32);
  builder.set("sinks", normal(DType::f32, {4}, 6));
  answer_gradients(builder, DType::f32);
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  CheckOptions sampled;
  sampled.rows = 7;
  const Report report = check(input, contract, sampled);
  const KnownTruth truth(input, contract, sampled, report);
  CHECK(truth.all().rows.size() == 7);
  CHECK(truth.all().keys.size() == 7);
  for (const AnswerKind kind : {AnswerKind::out, AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
    CHECK(truth.holds(kind));
  }
  CHECK_FALSE(truth.holds(AnswerKind::dsinks));
  CHECK_FALSE(truth.holds(AnswerKind::dbias));
  for (Index j = 0; j < 6; ++j) {
    CHECK(truth.rows_that_see({1, 1, j}) == 2 * std::max<Index>(0, 5 - j));
  }
}

TEST_CASE("a search that stops ends at the first refusal, any other counts all of them") {
  CaseBuilder builder = with_all(DType::f32);
  for (Index n = 0; n < 2 * 4 * 5; ++n) set_value(builder, "dq", 4 * n, 100);
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const Report report = check(input, contract, {});
  const KnownTruth truth(input, contract, {}, report);
  const auto failed = [&](bool stop) {
    const Opinions all = truth.judge(contract, {AnswerKind::dq}, truth.all(), stop);
    return all[static_cast<std::size_t>(AnswerKind::dq)].tally.failed;
  };
  CHECK(failed(false) == 2 * 4 * 5);
  CHECK(failed(true) == 1);
}

TEST_CASE("batches that change places take their fields of gradients along") {
  CaseBuilder builder = with_all(DType::f32);
  const auto fields_of = [](const CaseBuilder& one) {
    const Case input = one.assemble();
    const Contract contract = read_contract("fp32", input.problem.spec);
    return gradient_fields(input, contract, {}, check(input, contract, {}));
  };
  const std::vector<GradientField> before = fields_of(builder);
  for (auto& [name, tensor] : builder.tensors) {
    const auto half = static_cast<std::ptrdiff_t>(tensor.bytes.size() / 2);
    std::rotate(tensor.bytes.begin(), tensor.bytes.begin() + half, tensor.bytes.end());
  }
  const std::vector<GradientField> after = fields_of(builder);
  REQUIRE(before.size() == 3);
  REQUIRE(after.size() == 3);
  for (std::size_t n = 0; n < 3; ++n) {
    const std::size_t count = before[n].elements.size();
    for (std::size_t place = 0; place < count; ++place) {
      const FieldElement& one = after[n].elements[(place + count / 2) % count];
      CHECK(before[n].elements[place].exact == one.exact);
      CHECK(before[n].elements[place].bound == one.bound);
    }
  }
}
