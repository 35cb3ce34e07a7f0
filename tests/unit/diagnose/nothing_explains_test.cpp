// Answers that no class explains although some of a class's boxes hold them: what a form leaves
// open, what another contract does not judge, what has another width; and two that a class does.
#include <limits>

#include "tests/unit/diagnose/planted.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("an LSE that is left open explains nothing if out is right") {
  // The rows see keys of one tile of 8; two tiles more lie behind what they see.
  CaseBuilder builder = plain_case(R"({"version": 1, "causal": "top_left"})",
                                   {.heads = 1, .queries = 8, .keys = 20}, DType::f32);
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), 17.0}) {
    set_value(builder, "lse", 3, wrong);
    const Diagnosed result = explain(builder, "fp32");
    REQUIRE(result.report.verdict == Verdict::fail);
    CHECK(result.ids().empty());
  }
}

TEST_CASE("a looser contract that does not judge what was refused explains nothing") {
  // The row with the wrong LSE has values that fp16 cannot add up.
  CaseBuilder builder = random_case(DType::bf16, {.heads = 1, .queries = 3, .keys = 3});
  builder.spec = R"({"version": 1, "causal": "top_left"})";
  for (std::int64_t c = 0; c < 3; ++c) set_value(builder, "v", c + 6, 0x1p17);
  answer(builder, DType::bf16);
  set_value(builder, "lse", 2, value_at(builder, "lse", 2) + 1);
  const Diagnosed result = explain(builder, "bf16-flash");
  REQUIRE(result.report.find(AnswerKind::lse)->tally.failed == 1);
  CHECK(result.ids().empty());
}

TEST_CASE("gradients of different widths are never exchanged") {
  CaseBuilder builder = random_case(DType::f32, {.heads = 1, .head_dim = 5, .value_dim = 2});
  add_upstream(builder, DType::f32);
  answer(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (std::int64_t n = 0; n < 9 * 2; ++n) set_value(builder, "dv", n, 0);
  const Diagnosed result = explain(builder, "fp32");
  REQUIRE(result.report.verdict == Verdict::fail);
  CHECK(result.ids().count("DQ-ZERO") == 1);
  CHECK(result.ids().count("DKV-SWAP") == 0);
}

TEST_CASE("a gradient of the lse with the wrong sign, or none, is named in dq and dk") {
  CaseBuilder right = random_case(DType::f32, {.heads = 1});
  add_upstream(right, DType::f32);
  answer(right, DType::f32);
  const std::pair<double, std::string> forms[] = {{0, "the gradient of the lse is ignored"},
                                                  {-1, "the sign of the gradient of the lse"}};
  for (const auto& [factor, words] : forms) {
    CaseBuilder other = right;
    for (std::int64_t i = 0; i < 7; ++i) {
      set_value(other, "dlse", i, factor * value_at(right, "dlse", i));
    }
    answer_gradients(other, DType::f32);
    CaseBuilder wrong = right;
    for (const char* name : {"dq", "dk", "dv"}) wrong.set(name, *other.find(name));
    const Diagnosed result = explain(wrong, "fp32");
    REQUIRE(result.report.verdict == Verdict::fail);
    std::set<std::string> named;
    for (const Explanation& one : result.diagnosis.explanations) named.insert(one.words);
    CHECK(named.count(words) == 1);
  }
}

TEST_CASE("the first tile is lost with its sink, or without it") {
  CaseBuilder builder = random_case(DType::f32, {.heads = 2, .keys = 20});
  builder.set("sinks", normal(DType::f32, {2}, 10));
  answer(builder, DType::f32);
  const Case input = builder.assemble();
  for (const bool with_sink : {false, true}) {
    PlainKernel kernel(input.problem);
    kernel.sees = [](std::int64_t, std::int64_t, std::int64_t j) { return j >= 8; };
    if (with_sink) kernel.sink = nullptr;
    CaseBuilder wrong = builder;
    store(input.problem, kernel, wrong);
    std::set<std::string> named;
    for (const Explanation& one : explain(wrong, "fp32").diagnosis.explanations) {
      named.insert(one.words);
    }
    CHECK(named.count("tile 0 (tiles of 8) is never absorbed") == !with_sink);
    CHECK(named.count("tile 0 (tiles of 8) and the sink are never absorbed") == with_sink);
  }
}
