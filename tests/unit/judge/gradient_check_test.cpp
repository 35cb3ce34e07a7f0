// Gradients judged: what passes, what fails and exactly where, what is not applicable, and that a
// report depends neither on threads nor on instruction sets.
#include <cmath>
#include <limits>

#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A case with upstream gradients and every gradient answered.
CaseBuilder with_gradients(DType type, const Sizes& sizes = {}, const char* spec = nullptr) {
  CaseBuilder builder = random_case(type, sizes);
  if (spec != nullptr) builder.spec = spec;
  add_upstream(builder, type);
  answer_gradients(builder, type);
  return builder;
}

std::string name_of(AnswerKind kind) { return std::string(name(kind)); }

}  // namespace

TEST_CASE("correctly rounded gradients pass under every kind of contract") {
  struct Kind {
    DType type;
    const char* contract;
    const char* spec;
  };
  const char* causal = R"({"version": 1, "causal": "bottom_right"})";
  const char* plain = R"({"version": 1})";
  for (const Kind& kind :
       {Kind{DType::f32, "fp32", plain}, Kind{DType::bf16, "bf16-flash", causal},
        Kind{DType::f16, "fp16-flash", plain}, Kind{DType::f32, "fp32-ring3", causal},
        Kind{DType::bf16, "bf16-eager", plain}, Kind{DType::f64, "fp64", causal},
        Kind{DType::bf16, "bf16-ring2-lowp", plain}}) {
    const CaseBuilder builder = with_gradients(kind.type, {.heads = 4, .kv_heads = 2}, kind.spec);
    const Report report = judge(builder, kind.contract);
    INFO(kind.contract);
    CHECK(report.verdict == Verdict::pass);
    REQUIRE(report.answers.size() == 3);
    CHECK(report.find(AnswerKind::dq)->tally.elements == 4 * 7 * 4);
    CHECK(report.find(AnswerKind::dk)->tally.elements == 2 * 9 * 4);
    CHECK(report.find(AnswerKind::dv)->tally.elements == 2 * 9 * 3);
    CHECK(report.keys_judged == 2 * 9);
    for (const AnswerReport& answer : report.answers) {
      CHECK(answer.tally.worst_element->error_over_bound <= 1);
      CHECK(answer.tally.gain < 1);
      CHECK(answer.tally.zeros.differ > 0);
    }
  }
}

TEST_CASE("without queries the gradients of keys, values and sinks are exactly zero") {
  CaseBuilder builder = random_case(DType::bf16, {.batches = 2, .queries = 0});
  builder.set("sinks", normal(DType::f32, {2}, 5));
  builder.set("dout", make_tensor(DType::bf16, {2, 2, 0, 3}, [](std::int64_t) { return 0; }));
  const auto zeros = [&](const char* name, std::vector<std::int64_t> shape) {
    builder.set(name, make_tensor(DType::bf16, std::move(shape), [](std::int64_t) { return 0; }));
  };
  zeros("dk", {2, 1, 9, 4}), zeros("dv", {2, 1, 9, 3}), zeros("dsinks", {2});
  for (const char* contract : {"bf16-flash", "bf16-ring4"}) {
    const Report right = judge(builder, contract);
    CHECK(right.verdict == Verdict::pass);
    CHECK(right.find(AnswerKind::dk)->tally.elements == 2 * 9 * 4);
    CHECK(right.find(AnswerKind::dv)->tally.elements == 2 * 9 * 3);
    CHECK(right.find(AnswerKind::dsinks)->tally.elements == 2);
    CheckOptions in_time;
    in_time.budget = 0;
    CHECK(judge(builder, contract, in_time).verdict == Verdict::pass);
    for (const char* name : {"dk", "dv", "dsinks"}) {
      CaseBuilder wrong = builder;
      set_value(wrong, name, 1, 0x1p-126);
      CHECK(judge(wrong, contract).verdict == Verdict::fail);
    }
  }
}

TEST_CASE("the verdict of every gradient flips exactly at its bound") {
  struct Kind {
    DType type;
    const char* contract;
  };
  for (const Kind& kind : {Kind{DType::f32, "fp32"}, Kind{DType::bf16, "bf16-flash"},
                           Kind{DType::f16, "fp16-flash"}, Kind{DType::bf16, "bf16-eager"}}) {
    CaseBuilder builder = random_case(kind.type);
    builder.set("bias", normal(DType::f32, {1, 2, 7, 9}, 5));
    builder.set("sinks", normal(DType::f32, {2}, 6));
    add_upstream(builder, kind.type);
    answer_gradients(builder, kind.type);
    REQUIRE(judge(builder, kind.contract).verdict == Verdict::pass);
    const GradientBoxes boxes = gradient_boxes(builder, kind.contract);
    const auto flips = [&](AnswerKind answer, std::int64_t n, const Box& box) {
      INFO(kind.contract << " " << name_of(answer) << " box " << box.low << " " << box.high);
      const auto verdict_with = [&](double value) {
        CaseBuilder changed = builder;
        set_value(changed, name_of(answer), n, value);
        return judge(changed, kind.contract).verdict;
      };
      CHECK(verdict_with(box.high) == Verdict::pass);
      CHECK(verdict_with(round_up(kind.type, std::nextafter(box.high, kInfinity))) ==
            Verdict::fail);
      CHECK(verdict_with(box.low) == Verdict::pass);
      CHECK(verdict_with(round_down(kind.type, std::nextafter(box.low, -kInfinity))) ==
            Verdict::fail);
    };
    flips(AnswerKind::dq, 4 * 4 + 1, boxes.dq[4 * 4 + 1]);
    flips(AnswerKind::dk, 5 * 4 + 2, boxes.dk[5 * 4 + 2]);
    flips(AnswerKind::dv, 8 * 3 + 1, boxes.dv[8 * 3 + 1]);
    flips(AnswerKind::dbias, 3 * 9 + 4, boxes.dbias[3 * 9 + 4]);
    flips(AnswerKind::dsinks, 1, boxes.dsinks[1]);
  }
}

TEST_CASE("a broadcast bias is judged by sums over its axes") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{7, 9}, {1, 2, 1, 9}, {9}, {2, 7, 1}}) {
    CaseBuilder builder = random_case(DType::f32, {.batches = 2});
    builder.set("bias", normal(DType::f32, shape, 5));
    add_upstream(builder, DType::f32);
    answer_gradients(builder, DType::f32);
    const Report good = judge(builder, "fp32");
    CHECK(good.verdict == Verdict::pass);
    CHECK(good.find(AnswerKind::dbias)->tally.elements ==
          static_cast<std::int64_t>(builder.find("bias")->bytes.size() / 4));
    const double right = value_at(builder, "dbias", 3);
    set_value(builder, "dbias", 3, right + 0.01);
    const Report bad = judge(builder, "fp32");
    CHECK(bad.find(AnswerKind::dbias)->verdict == Verdict::fail);
    CHECK(bad.find(AnswerKind::dbias)->tally.failed == 1);
  }
}

TEST_CASE("gradients of zeros are refused, and where zeros would pass there is no verdict") {
  CaseBuilder builder = with_gradients(DType::f32);
  for (const AnswerKind kind : {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
    CaseBuilder zeros = builder;
    std::fill(zeros.find(name_of(kind))->bytes.begin(), zeros.find(name_of(kind))->bytes.end(),
              std::byte{0});
    CHECK(judge(zeros, "fp32").find(kind)->verdict == Verdict::fail);
  }
  const std::string loose = R"({"base": "fp32", "backward": {"grad_acc": {"model": "any_order", )"
                            R"("products": "rounded", "u": "0x1p-2"}}})";
  const Report report = judge(builder, loose);
  CHECK(report.find(AnswerKind::dv)->verdict == Verdict::undecided);
  CHECK(contains(report.find(AnswerKind::dv)->reason, "no power"));
}

TEST_CASE("where every value is the same, zero is the gradient of the queries and passes") {
  CaseBuilder builder = random_case(DType::f32);
  builder.set("v",
              make_tensor(DType::f32, {1, 1, 9, 3}, [](std::int64_t n) { return n % 3 + 0.7f; }));
  add_upstream(builder, DType::f32);
  builder.erase("dlse");
  answer_gradients(builder, DType::f32);
  for (std::int64_t n = 0; n < 2 * 7 * 4; ++n) set_value(builder, "dq", n, 0);
  const Report report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::dq)->tally.zeros.differ == 0);
}

TEST_CASE("a demanded power is demanded of gradients, too") {
  const CaseBuilder builder = with_gradients(DType::f32);
  CheckOptions options;
  options.power = 0.5;
  CHECK(judge(builder, "fp32", options).verdict == Verdict::pass);
  options.power = 1e-9;
  CHECK(judge(builder, "fp32", options).verdict == Verdict::undecided);
}

TEST_CASE("what no query sees has no gradient, whatever its value") {
  CaseBuilder builder = random_case(DType::f32);
  builder.set("key_lengths", make_list(DType::i32, {6}));
  set_value(builder, "v", 8 * 3, kNaN);
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  CHECK(judge(builder, "fp32").verdict == Verdict::pass);
  CHECK(value_at(builder, "dk", 7 * 4) == 0);
  set_value(builder, "dk", 7 * 4, 1e-40);
  CHECK(judge(builder, "fp32").find(AnswerKind::dk)->verdict == Verdict::fail);
}

TEST_CASE("queries that see NaN, and the keys they see, are not applicable") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 9});
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1]})";
  set_value(builder, "k", 4 * 4, kNaN);  // key 4 is seen by queries 4, 5, 6, which see keys 2 to 6
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (const char* name : {"dq", "dk", "dv"}) {
    OwnedTensor& tensor = *builder.find(name);
    for (std::size_t n = 0; n < tensor.bytes.size() / 4; ++n) {
      if (std::isnan(value_at(builder, name, static_cast<std::int64_t>(n)))) {
        set_value(builder, name, static_cast<std::int64_t>(n), 7);
      }
    }
  }
  const Report report = judge(builder, "fp32");
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::dq)->tally.not_applicable == 2 * 3);
  CHECK(report.find(AnswerKind::dk)->tally.not_applicable == 5);
  CHECK(report.find(AnswerKind::dv)->tally.not_applicable == 5);
  CHECK(report.find(AnswerKind::dk)->tally.rows == 4);
  set_value(builder, "dv", 0, 100);
  CHECK(judge(builder, "fp32").verdict == Verdict::fail);
}

TEST_CASE("a row whose gradients may overflow leaves the keys that it sees unjudged") {
  // Row 90 belongs to a later group of rows than the first; it sees keys 88 to 90.
  CaseBuilder builder = random_case(DType::f32, {.queries = 100, .keys = 100});
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1]})";
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (std::int64_t c = 0; c < 3; ++c) set_value(builder, "dout", 90 * 3 + c, 0x1p127);
  const Report report = judge(builder, "fp32");
  CHECK(report.verdict != Verdict::fail);
  CHECK(report.find(AnswerKind::dq)->tally.not_applicable == 1);
  CHECK(report.find(AnswerKind::dk)->tally.not_applicable == 3);
  CHECK(report.find(AnswerKind::dv)->tally.not_applicable == 3);
  set_value(builder, "dv", 89 * 3, 7);
  CHECK(judge(builder, "fp32").verdict != Verdict::fail);
  set_value(builder, "dv", 91 * 3, 7);
  CHECK(judge(builder, "fp32").verdict == Verdict::fail);
}

TEST_CASE("the gradient of a bias belongs to the keys of its row, and to no key before them") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 9, .keys = 9});
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1]})";
  builder.set("bias", normal(DType::f32, {1, 2, 9, 9}, 8));
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  CHECK(judge(builder, "fp32").verdict == Verdict::pass);
  set_value(builder, "dbias", 6 * 9 + 1, 0x1p-20);  // query 6 does not see key 1
  CHECK(judge(builder, "fp32").verdict == Verdict::fail);
}

TEST_CASE("gradients of keys that a row of NaN sees are written as no numbers") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 9});
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1]})";
  set_value(builder, "k", 4 * 4, kNaN);  // seen by queries 4, 5, 6, which see keys 2 to 6
  add_upstream(builder, DType::f32);
  const Case input = builder.assemble();
  const GradientTensors truth =
      gradient_tensors(input.problem, Upstream{input.dout, input.dlse, {}}, 0, {});
  for (std::size_t key = 0; key < 9; ++key) {
    CHECK(std::isnan(truth.dk.lo[4 * key]) == (key >= 2 && key <= 6));
    CHECK(std::isnan(truth.dv.hi[3 * key]) == (key >= 2 && key <= 6));
  }
}

TEST_CASE("upstream gradients may be of the LSE alone") {
  CaseBuilder builder = random_case(DType::f32);
  add_upstream(builder, DType::f32);
  builder.erase("dout");
  answer_gradients(builder, DType::f32);
  const Report report = judge(builder, "fp32");
  CHECK(report.find(AnswerKind::dq)->verdict == Verdict::pass);
  CHECK(value_at(builder, "dv", 0) == 0);
  builder.erase("dlse");
  CHECK(contains(refusal([&] { judge(builder, "fp32"); }), "dout or dlse"));
}

TEST_CASE("isolated gradients start from the kernel's own out and lse") {
  CaseBuilder builder = random_case(DType::bf16);
  answer(builder, DType::bf16);
  add_upstream(builder, DType::bf16);
  const std::string isolated = R"({"base": "bf16-flash", "backward": {"mode": "isolated"}})";
  answer_gradients(builder, DType::bf16);
  CHECK(judge(builder, isolated).verdict == Verdict::pass);
  // A forward pass that hands over another LSE makes other gradients right.
  for (std::int64_t n = 0; n < 14; ++n) {
    set_value(builder, "lse", n, value_at(builder, "lse", n) + 0.5);
  }
  CheckOptions gradients;
  gradients.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
  CHECK(judge(builder, isolated, gradients).verdict == Verdict::fail);
  CHECK(judge(builder, "bf16-flash", gradients).verdict == Verdict::pass);
  builder.erase("lse");
  CHECK(contains(refusal([&] { judge(builder, isolated, gradients); }), "out and lse"));
}

TEST_CASE("the given lse is in the base that the contract names where the spec names none") {
  CaseBuilder builder = random_case(DType::bf16);
  answer(builder, DType::bf16);
  add_upstream(builder, DType::bf16);
  answer_gradients(builder, DType::bf16);
  for (std::int64_t n = 0; n < 14; ++n) {
    const double binary = value_at(builder, "lse", n) / std::log(2.0);
    set_value(builder, "lse", n, round_nearest(DType::f32, binary));
  }
  const auto verdict = [&](const char* base) {
    const std::string lse = std::string(R"("lse": {"base": ")") + base + "\"}";
    return judge(builder,
                 R"({"base": "bf16-flash", "backward": {"mode": "isolated"}, )" + lse + "}")
        .verdict;
  };
  CHECK(verdict("2") == Verdict::pass);
  CHECK(verdict("e") == Verdict::fail);
}

TEST_CASE("gradients are the same for every number of threads") {
  CaseBuilder builder =
      with_gradients(DType::f32, {.batches = 2, .heads = 4, .kv_heads = 2, .queries = 70});
  set_value(builder, "dk", 5, 3);
  const auto with_threads = [&](int threads) {
    CheckOptions options;
    options.walk.threads = threads;
    return judge(builder, "fp32", options);
  };
  const Report one = with_threads(1);
  CHECK(one.verdict == Verdict::fail);
  for (const int threads : {2, 3, 8}) {
    const Report many = with_threads(threads);
    for (std::size_t n = 0; n < one.answers.size(); ++n) {
      const TensorTally &a = one.answers[n].tally, &b = many.answers[n].tally;
      CHECK(a.failed == b.failed);
      CHECK(a.gain == b.gain);
      CHECK(a.worst_element->exact == b.worst_element->exact);
      CHECK(a.worst_element->error_over_bound == b.worst_element->error_over_bound);
    }
  }
}

TEST_CASE("gradients are judged alike by intervals of many digits") {
  CaseBuilder builder = with_gradients(DType::f32, {.queries = 4, .keys = 5});
  CheckOptions digits;
  digits.bits = 128;
  CHECK(judge(builder, "fp32", digits).verdict == Verdict::pass);
  set_value(builder, "dv", 4, 3);
  CHECK(judge(builder, "fp32", digits).verdict == Verdict::fail);
}

TEST_CASE("sampled rows judge their dq, and sampled keys their dk and dv") {
  CaseBuilder builder = with_gradients(DType::f32, {.queries = 40, .keys = 30});
  CheckOptions options;
  options.rows = 10;
  const Report report = judge(builder, "fp32", options);
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.find(AnswerKind::dq)->tally.rows == 10);
  CHECK(report.find(AnswerKind::dk)->tally.rows == 10);
  CHECK(report.keys_judged == 10);
  CHECK(report.keys_total == 30);
  for (std::int64_t c = 0; c < 3; ++c) set_value(builder, "dv", 17 * 3 + c, 50);
  int found = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    found += judge(builder, "fp32", options).verdict == Verdict::fail;
  }
  CHECK(found > 0);
  CHECK(found < 20);  // a third of the keys each
}

TEST_CASE("sums over rows that double-double leaves open are taken from intervals") {
  // Weights of e^-10000 beside others: in double-double no more is known of them than 2^-990.
  CaseBuilder builder = random_case(DType::f64, {.queries = 6, .keys = 5});
  builder.set("bias",
              make_tensor(DType::f64, {5}, [](std::int64_t j) { return j == 2 ? -1e4 : 0.5; }));
  builder.set("dout", normal(DType::f64, {1, 2, 6, 3}, 8));
  const Case input = builder.assemble();
  const GradientTensors truth =
      gradient_tensors(input.problem, Upstream{input.dout, {}, {}}, 0, {}, DType::f64);
  REQUIRE(truth.dbias.lo.size() == 5);
  CHECK(truth.dbias.lo[2] > -0x1p-1060);
  CHECK(truth.dbias.hi[2] < 0x1p-1060);
  for (const std::size_t j : {0, 1, 3, 4}) CHECK_FALSE(std::isnan(truth.dbias.rounded[j]));
}

TEST_CASE("NaN and infinity never pass for a gradient") {
  for (const double wrong : {kNaN, kInfinity, -kInfinity}) {
    for (const char* name : {"dq", "dk", "dv"}) {
      CaseBuilder builder = with_gradients(DType::f32);
      set_value(builder, name, 2, wrong);
      CHECK(judge(builder, "fp32").verdict == Verdict::fail);
    }
  }
}

TEST_CASE("intervals of gradients hold each other at more digits, and round where decided") {
  const CaseBuilder builder = with_gradients(DType::f32, {.queries = 5, .keys = 6});
  const Case input = builder.assemble();
  const Upstream upstream{input.dout, input.dlse, {}};
  const GradientTensors fast = gradient_tensors(input.problem, upstream, 0, {}, DType::f32);
  const GradientTensors digits = gradient_tensors(input.problem, upstream, 200, {});
  const auto compare = [](const IntervalTensor& a, const IntervalTensor& b) {
    REQUIRE(a.lo.size() == b.lo.size());
    for (std::size_t n = 0; n < a.lo.size(); ++n) {
      CHECK(a.lo[n] <= b.hi[n]);
      CHECK(b.lo[n] <= a.hi[n]);
      CHECK(a.rounded[n] == round_nearest(DType::f32, b.lo[n]));
    }
    CHECK(a.undecided() == 0);
  };
  compare(fast.dq, digits.dq);
  compare(fast.dk, digits.dk);
  compare(fast.dv, digits.dv);
}
