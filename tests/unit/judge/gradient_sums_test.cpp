// Gradients that are sums over rows, judged: a row that is not judged leaves its sums unjudged, one
// that nothing certifies leaves them open, and what double-double leaves open intervals decide.
#include <cmath>
#include <limits>

#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("a sum with a row that is not applicable is not judged, the others are") {
  CaseBuilder builder = random_case(DType::f32);
  builder.set("bias", normal(DType::f32, {7, 9}, 5));  // the same for both heads
  builder.set("sinks", normal(DType::f32, {2}, 6));
  set_value(builder, "q", 3 * 4, std::numeric_limits<double>::quiet_NaN());  // query 3 of head 0
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (std::int64_t j = 0; j < 9; ++j) set_value(builder, "dbias", 3 * 9 + j, 7);
  set_value(builder, "dsinks", 0, 7);
  CheckOptions sums;
  sums.only = {AnswerKind::dbias, AnswerKind::dsinks};
  const Report report = judge(builder, "fp32", sums);
  CHECK(report.verdict == Verdict::pass);
  const TensorTally& dbias = report.find(AnswerKind::dbias)->tally;
  CHECK(dbias.not_applicable == 1);
  CHECK(dbias.rows == 6);
  CHECK(dbias.elements == 6 * 9);
  const TensorTally& dsinks = report.find(AnswerKind::dsinks)->tally;
  CHECK(dsinks.not_applicable == 1);
  CHECK(dsinks.elements == 1);
  set_value(builder, "dbias", 4 * 9, 7);
  set_value(builder, "dsinks", 1, 7);
  const Report wrong = judge(builder, "fp32", sums);
  CHECK(wrong.find(AnswerKind::dbias)->tally.failed == 1);
  CHECK(wrong.find(AnswerKind::dsinks)->tally.failed == 1);
}

TEST_CASE("sums that double-double leaves open are judged from intervals") {
  // A weight of e^-10000: in double-double no more is known of it than 2^-990.
  CaseBuilder builder = random_case(DType::f64, {.queries = 6, .keys = 5});
  builder.set("bias",
              make_tensor(DType::f64, {5}, [](std::int64_t j) { return j == 2 ? -1e4 : 0.5; }));
  builder.set("dout", normal(DType::f64, {1, 2, 6, 3}, 8));
  answer_gradients(builder, DType::f64);
  CheckOptions sums;
  sums.only = {AnswerKind::dbias};
  const Report report = judge(builder, "fp64", sums);
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.escalated == 2 * 6);
  CHECK(report.bits == 128);
  CHECK(report.find(AnswerKind::dbias)->tally.undecided == 0);
  set_value(builder, "dbias", 2, 0x1p-1000);
  CHECK(judge(builder, "fp64", sums).verdict == Verdict::fail);
}

TEST_CASE("a sum with a row that no number of digits certifies is left open") {
  // Two sums of 2^2040, 2^-1000 and -2^2040 that cancel, under a scale that makes the rest of them
  // too much in 2048 digits. The second head has queries and keys of zero.
  const double big = 0x1p1020, of_q[] = {big, 1, big, big, 1, big},
               of_k[] = {big, 0x1p-1000, -big, -big, -0x1p-1000, big};
  CaseBuilder builder;
  builder.set("q", make_tensor(DType::f64, {1, 2, 1, 6},
                               [&](std::int64_t n) { return n < 6 ? of_q[n] : 0.0; }));
  builder.set("k", make_tensor(DType::f64, {1, 2, 2, 6},
                               [&](std::int64_t n) { return n < 6 ? of_k[n] : 0.0; }));
  builder.set("v", make_tensor(DType::f64, {1, 2, 2, 1}, [](std::int64_t n) { return n; }));
  builder.set("sinks", make_tensor(DType::f64, {2}, [](std::int64_t) { return 0; }));
  builder.set("dout", make_tensor(DType::f64, {1, 2, 1, 1}, [](std::int64_t) { return 1; }));
  builder.set("dsinks", make_tensor(DType::f64, {2}, [](std::int64_t) { return 0; }));
  builder.spec = R"({"version": 1, "scale": 1e300})";
  const TensorTally dsinks = judge(builder, "fp64").find(AnswerKind::dsinks)->tally;
  CHECK(dsinks.undecided == 1);
  CHECK(dsinks.failed == 1);
  CHECK(dsinks.elements == 2);
}

TEST_CASE("a row that sees nothing but its sink leaves all keys judged, whatever its query is") {
  CaseBuilder builder = random_case(DType::f32, {.heads = 1, .queries = 3});
  builder.set("sinks", normal(DType::f32, {1}, 6));
  builder.set("mask", make_tensor(DType::boolean, {1, 1, 3, 9},
                                  [](std::int64_t n) { return n < 9 ? 0.0 : 1.0; }));
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (const double q : {1e30, std::numeric_limits<double>::quiet_NaN()}) {
    set_value(builder, "q", 1, q);
    const Report report = judge(builder, "fp32");
    CHECK(report.verdict == Verdict::pass);
    CHECK(report.find(AnswerKind::dk)->tally.elements == 9 * 4);
    CHECK(report.find(AnswerKind::dk)->tally.unbounded == 0);
  }
}

TEST_CASE("a sum of dsinks or dbias that may overflow on the way has no bound") {
  // The sink has nearly all weight, and each query adds its dlse: 40000, 40000, -40000, -40000.
  CaseBuilder builder = random_case(DType::f16, {.heads = 1, .queries = 4, .keys = 1});
  builder.set("q", make_tensor(DType::f16, {1, 1, 4, 4}, [](std::int64_t) { return 0; }));
  builder.set("sinks", make_tensor(DType::f32, {1}, [](std::int64_t) { return 20; }));
  builder.set("dlse", make_tensor(DType::f32, {1, 1, 4},
                                  [](std::int64_t i) { return i < 2 ? 40000.0 : -40000.0; }));
  const double infinity = std::numeric_limits<double>::infinity();
  const auto judged = [&](const char* contract, double scale) {
    CaseBuilder with = builder;
    for (std::int64_t i = 0; i < 4; ++i) {
      set_value(with, "dlse", i, scale * value_at(with, "dlse", i));
    }
    with.set("dsinks", make_tensor(DType::f32, {1}, [&](std::int64_t) { return infinity; }));
    return judge(with, contract).find(AnswerKind::dsinks)->tally;
  };
  CHECK(judged("fp16-ring2-lowp", 1).unbounded == 1);  // it carries partial sums in fp16
  CHECK(judged("fp16-ring2-lowp", 1).failed == 0);
  CHECK(judged("fp16-ring2-lowp", 0x1p-3).failed == 1);
  CHECK(judged("fp32-ring2", 1).failed == 1);
  // The other way round: the key has all weight, and a bias of one element hears of every query.
  builder.erase("sinks");
  builder.set("k", make_tensor(DType::f16, {1, 1, 1, 4}, [](std::int64_t) { return 0; }));
  builder.set("bias", make_tensor(DType::f32, {1}, [](std::int64_t) { return 0; }));
  const auto bias = [&](const char* contract) {
    CaseBuilder with = builder;
    with.set("dbias", make_tensor(DType::f32, {1}, [&](std::int64_t) { return infinity; }));
    return judge(with, contract).find(AnswerKind::dbias)->tally;
  };
  CHECK(bias("fp16-ring2-lowp").unbounded == 1);
  CHECK(bias("fp32-ring2").failed == 1);
}

TEST_CASE("every gradient of every batch and head is judged once, what is not selected is not") {
  CaseBuilder builder = random_case(DType::f32, {.batches = 2, .heads = 4, .kv_heads = 2});
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  const Report report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::dq)->tally.elements == 2 * 4 * 7 * 4);
  CHECK(report.find(AnswerKind::dk)->tally.elements == 2 * 2 * 9 * 4);
  CHECK(report.find(AnswerKind::dv)->tally.elements == 2 * 2 * 9 * 3);
  CHECK(report.keys_judged == 2 * 2 * 9);
  CheckOptions of_queries;
  of_queries.only = {AnswerKind::dq};
  const Report queries = judge(builder, "fp32", of_queries);
  CHECK(queries.find(AnswerKind::dq)->tally.elements == 2 * 4 * 7 * 4);
  CHECK(queries.find(AnswerKind::dk) == nullptr);
  CHECK(queries.keys_judged == 0);
}
