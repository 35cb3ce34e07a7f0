// Fit: the field that decides, and the tightest name that accepts.
#include "oracle/diagnose/fit.hpp"

#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr Sizes kSizes{.batches = 1,
                       .heads = 2,
                       .kv_heads = 1,
                       .queries = 24,
                       .keys = 24,
                       .head_dim = 8,
                       .value_dim = 8};

bool names(const std::vector<FieldChange>& changes, const std::string& field) {
  for (const FieldChange& change : changes) {
    if (change.field == field) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("an answer rounded to sixteen bits is decided by the output type") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  for (std::int64_t n = 0; n < 2 * 24 * 8; ++n) {
    set_value(builder, "out", n, round_nearest(DType::bf16, value_at(builder, "out", n)));
  }
  const Fit result = fit(builder.assemble(), "fp32", {});
  REQUIRE(result.answers.size() == 1);
  CHECK(result.answers[0].kind == AnswerKind::out);
  CHECK(names(result.answers[0].deciding, "out.dtype"));
}

TEST_CASE("an inexact exponential is decided by exp_rel, and a name with exp13 accepts it") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::bf16);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  // Relative errors of 2^-14 that change from pair to pair, as a short polynomial makes them.
  kernel.score = [before = kernel.score](std::int64_t h, std::int64_t i, std::int64_t j,
                                         double dot) {
    return before(h, i, j, dot) + std::ldexp((i * 7 + j * 3) % 5 < 4 ? 1.0 : -1.0, -14);
  };
  store(input.problem, kernel, builder);
  const Fit result = fit(builder.assemble(), "bf16-flash", {});
  REQUIRE(result.declared.verdict == Verdict::fail);
  REQUIRE(result.answers.size() == 1);
  CHECK(result.answers[0].kind == AnswerKind::lse);
  CHECK(names(result.answers[0].deciding, "softmax.exp_rel"));
  REQUIRE_FALSE(result.accepting.empty());
  bool exp13 = false;
  for (const FittedContract& one : result.accepting) exp13 |= contains(one.contract, "exp13");
  CHECK(exp13);
  CHECK(result.accepting.front().allows <= result.accepting.back().allows);
}

TEST_CASE("a right answer is accepted by its own contract and by tighter ones") {
  const CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::bf16);
  const Fit result = fit(builder.assemble(), "bf16-eager", {});
  CHECK(result.answers.empty());
  REQUIRE_FALSE(result.accepting.empty());
  CHECK(result.accepting.front().allows < 1);
}

TEST_CASE("another function is accepted by no contract") {
  CaseBuilder builder = plain_case(R"({"version": 1, "causal": "top_left"})", kSizes, DType::f32);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  kernel.sees = [](std::int64_t, std::int64_t i, std::int64_t j) { return j <= i + 1; };
  store(input.problem, kernel, builder);
  const Fit result = fit(builder.assemble(), "fp32", {});
  CHECK(result.accepting.empty());
  for (const AnswerFit& answer : result.answers) CHECK(answer.deciding.empty());
}
