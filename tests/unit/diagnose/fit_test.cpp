// Fit: the field that decides, and the tightest name that accepts.
#include "oracle/diagnose/fit.hpp"

#include "oracle/diagnose/declared_elsewhere.hpp"
#include "oracle/diagnose/fit_fields.hpp"
#include "tests/unit/diagnose/planted.hpp"
#include "tests/unit/judge/gradient_case.hpp"

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

TEST_CASE("an exponential that is inexact at zero as well is decided by exp_rel and exp_zero") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::bf16);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  // Every weight is too large by 2^-13, also that of the row's maximum, whose exponent is 0.
  kernel.lse = [](double lse) { return lse + std::log1p(0x1p-13); };
  store(input.problem, kernel, builder);
  const Fit result = fit(builder.assemble(), "bf16-flash", {});
  REQUIRE(result.answers.size() == 1);
  CHECK(result.answers[0].kind == AnswerKind::lse);
  CHECK(names(result.answers[0].deciding, "softmax.exp_rel, softmax.exp_zero"));
}

TEST_CASE("a gradient whose running sum is stored in sixteen bits is decided by its sums") {
  constexpr std::int64_t kRows = 512, kKeys = 8, kColumns = 4, kChunk = 32;
  CaseBuilder builder = random_case(DType::bf16,
                                    {.heads = 1,
                                     .kv_heads = 1,
                                     .queries = kRows,
                                     .keys = kKeys,
                                     .head_dim = 4,
                                     .value_dim = kColumns},
                                    7);
  // Of one sign, so that the sum grows and every store cuts some of it.
  builder.set("dout", make_tensor(DType::bf16, {1, 1, kRows, kColumns}, [](std::int64_t n) {
                return round_nearest(DType::bf16, 1 + 0.01 * static_cast<double>(n % 37));
              }));
  answer_gradients(builder, DType::bf16);
  const Case input = builder.assemble();
  const HeadTruth head(input.problem, 0, 0, Precision::fast);
  std::vector<double> sum(kKeys * kColumns);
  for (std::int64_t i = 0; i < kRows; ++i) {
    const HeadTruth::RowId id{0, i};
    RowTruth row;
    head.rows({&id, 1}, &row);
    for (std::size_t n = 0; n < sum.size(); ++n) {
      const auto column = static_cast<std::int64_t>(n) % kColumns;
      sum[n] += row.p[n / kColumns] * input.dout.at(0, 0, i, column);
      if (i % kChunk == kChunk - 1) sum[n] = round_down(DType::bf16, sum[n]);
    }
  }
  for (std::size_t n = 0; n < sum.size(); ++n) {
    set_value(builder, "dv", static_cast<std::int64_t>(n), sum[n]);
  }
  const Fit result = fit(builder.assemble(), "bf16-flash", {});
  REQUIRE(result.answers.size() == 1);
  CHECK(result.answers[0].kind == AnswerKind::dv);
  REQUIRE_FALSE(result.answers[0].deciding.empty());
  CHECK(contains(result.answers[0].deciding.front().field, "16-bit gradient sums"));
  REQUIRE_FALSE(result.accepting.empty());
  CHECK(contains(result.accepting.front().contract, "+gacc"));
}

TEST_CASE("contracts that judge gradients from the kernel's own out are tried, and try others") {
  CaseBuilder builder = random_case(DType::f32, kSizes, 11);
  builder.set("dout", normal(DType::f32, {1, 2, 24, 8}, 12));
  answer(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (std::int64_t n = 0; n < 24 * 8; ++n) {  // as a kernel that stores dk in bfloat16
    set_value(builder, "dk", n, round_nearest(DType::bf16, value_at(builder, "dk", n)));
  }
  const Case input = builder.assemble();
  for (const char* contract : {"fp32", "fp32+isolated"}) {
    INFO(contract);
    const Fit result = fit(input, contract, {});
    CHECK(result.declared.verdict == Verdict::fail);
    REQUIRE(result.answers.size() == 1);
    CHECK(result.answers[0].kind == AnswerKind::dk);
    for (const FittedContract& one : result.accepting) {
      INFO(one.contract);
      CHECK(check(input, read_contract(one.contract, input.problem.spec), {}).verdict ==
            Verdict::pass);
    }
  }
}

TEST_CASE("an lse in base two needs another declaration, not a looser contract") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  for (std::int64_t n = 0; n < 2 * 24; ++n) {
    set_value(builder, "lse", n, value_at(builder, "lse", n) / std::log(2.0));
  }
  const Fit result = fit(builder.assemble(), "fp32", {});
  REQUIRE(result.answers.size() == 1);
  CHECK(names(result.answers[0].deciding, "lse.base"));
  CHECK(renamed(result));
  CHECK_FALSE(loosened(result));
  CHECK(explain(builder, "fp32").ids().count("LSE-BASE") == 1);
}

TEST_CASE("an lse in another base than the spec says names the base to be declared there") {
  const auto fit_of = [](const char* spec, double factor, const std::string& contract) {
    CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
    builder.spec = spec;
    for (std::int64_t n = 0; n < 2 * 24; ++n) {
      set_value(builder, "lse", n, value_at(builder, "lse", n) * factor);
    }
    return fit(builder.assemble(), contract, {});
  };
  const std::string named = R"({"base": "fp32", "lse": {"base": ")";
  const struct {
    const char* spec;
    double factor;
    std::string contract, value;
  } places[] = {
      {R"({"version": 1, "lse_base": "e"})", 1 / std::log(2.0), "fp32",
       R"(lse_base "2" in the spec)"},
      {R"({"version": 1, "lse_base": "2"})", 1, "fp32", R"(lse_base "e" in the spec)"},
      {R"({"version": 1, "lse_base": "2"})", 1, named + R"(2"}})",
       R"(lse.base "e", lse_base "e" in the spec)"},
      {R"({"version": 1})", 1, named + R"(2"}})", R"(lse.base "e")"},
  };
  for (const auto& [spec, factor, contract, value] : places) {
    INFO(spec << " " << contract);
    const Fit result = fit_of(spec, factor, contract);
    REQUIRE(result.answers.size() == 1);
    REQUIRE(renamed(result));
    CHECK(result.answers[0].deciding.front().value == value);
  }
  // An lse that is wrong in either base is not renamed.
  CHECK_FALSE(renamed(fit_of(R"({"version": 1, "lse_base": "e"})", 3, "fp32")));
}

TEST_CASE("without an answer there is nothing to fit") {
  CaseBuilder builder = random_case(DType::f32, kSizes, 3);
  const Fit result = fit(builder.assemble(), "fp32", {});
  CHECK(result.declared.verdict == Verdict::skipped);
  CHECK(result.accepting.empty());
  CHECK(result.tried == 0);
}

TEST_CASE("a contract covers what allows no more in any field, and nothing else") {
  using nlohmann::json;
  const auto both = [](const char* looser, const char* stricter) {
    const json a = json::parse(looser), b = json::parse(stricter);
    INFO(looser);
    CHECK(covers(a, a));
    CHECK(covers(a, b));
    CHECK_FALSE(covers(b, a));
  };
  both(R"({"softmax":{"exp_rel":"0x1p-12"}})", R"({"softmax":{"exp_rel":"0x1p-20"}})");
  both(R"({"softmax":{"exp_zero":"approx"}})", R"({"softmax":{"exp_zero":"exact"}})");
  both(R"({"softmax":{"block":16}})", R"({"softmax":{"block":64}})");
  both(R"({"score":{"store":["0x1p-8","0x1p-8"]}})", R"({"score":{"store":["0x1p-8"]}})");
  both(R"({"backward":{"ring":{"count":{"rows":32,"keys":512}}}})",
       R"({"backward":{"ring":{"count":{"rows":64,"keys":512}}}})");
  both(R"({"out":{"ftz":true}})", R"({"out":{"ftz":false}})");
  both(R"({"p":{"normalized":"any"}})", R"({"p":{"normalized":true}})");
  const json one = json::parse(R"({"score":{"store":["0x1p-8"]}})");
  CHECK(covers(one, json::parse(R"({"score":{"store":["0x1p-9","0x1p-9"]}})")));
}

TEST_CASE("rungs of a ladder loosen the declared contract") {
  using nlohmann::json;
  const Case input = plain_case(R"({"version": 1})", kSizes, DType::f32).assemble();
  for (const char* name : {"fp32", "bf16-flash+exp13", "bf16-ring4"}) {
    const json declared = json::parse(expanded_json(name));
    for (const AnswerKind kind : {AnswerKind::out, AnswerKind::lse, AnswerKind::dk}) {
      for (const FieldLadder& ladder : field_ladders(input, declared, kind)) {
        if (!ladder.loosens) continue;
        INFO(name << " " << ladder.field);
        for (const json& rung : ladder.rungs) {
          const json contract = merged_contract(declared, rung);
          CHECK(contract != declared);
          CHECK(covers(contract, declared));
        }
      }
    }
  }
}
