// Mistakes of dbias and dsinks, planted by the plain definition: each is named in its own words,
// and right gradients are explained by nothing.
#include "oracle/diagnose/table.hpp"
#include "tests/unit/diagnose/planted.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr Index kBatches = 2, kHeads = 3, kRows = 12, kWidth = 4;
constexpr double kCap = 3;

/// One addend of dbias, or of dsinks (j = 0), with all that a mistake may touch.
struct Addend {
  Index b, h, i, j;
  double p, dp, D, dlse, derivative;
};

/// What is added for it, and to which element.
struct Kernel {
  std::function<double(const Addend&)> bias = [](const Addend& x) {
    return x.p * (x.dp - x.D + x.dlse);
  };
  std::function<double(const Addend&)> sink = [](const Addend& x) { return -x.p * (x.D - x.dlse); };
  std::function<Addend(Addend)> bias_place = [](Addend x) { return x; };
  std::function<Index(Index h)> sink_head = [](Index h) { return h; };
};

/// Calls visit for every key of every row, and for the sink with j = -1.
void for_each_addend(const Case& input, const std::function<void(const Addend&)>& visit) {
  const Problem& p = input.problem;
  for (Index row = 0; row < kBatches * kHeads * kRows; ++row) {
    const Index b = row / (kHeads * kRows), h = row / kRows % kHeads, i = row % kRows;
    std::vector<double> weight, dp, derivative;
    const double sink = p.sinks ? std::exp(p.sinks.at(0, h, 0, 0)) : 0;
    double sum = sink, D = 0;
    for (Index j = 0; j < kRows; ++j) {
      double dot = 0, product = 0;
      for (Index d = 0; d < kWidth; ++d) {
        dot += p.q.at(b, h, i, d) * p.k.at(b, p.kv_head(h), j, d);
        product += input.dout.at(b, h, i, d) * p.v.at(b, p.kv_head(h), j, d);
      }
      const double y = std::tanh(dot / std::sqrt(static_cast<double>(kWidth)) / kCap);
      weight.push_back(std::exp(kCap * y + (p.bias ? p.bias.at(b, h, i, j) : 0)));
      dp.push_back(product);
      derivative.push_back(1 - y * y);
      sum += weight.back();
      D += weight.back() * product;
    }
    D /= sum;
    const double dlse = input.dlse.at(b, h, i, 0);
    for (Index j = 0; j < kRows; ++j) {
      const auto n = static_cast<std::size_t>(j);
      visit({b, h, i, j, weight[n] / sum, dp[n], D, dlse, derivative[n]});
    }
    visit({b, h, i, -1, sink / sum, 0, D, dlse, 1});
  }
}

/// Stores what the kernel makes of dbias and dsinks.
void store_additions(const CaseBuilder& right, const Kernel& kernel, CaseBuilder& builder) {
  const Case input = right.assemble();
  const BiasShape shape = bias_shape(input.problem);
  std::vector<double> dbias(index(shape[0] * shape[1] * shape[2] * shape[3])), dsinks(kHeads);
  for_each_addend(input, [&](const Addend& x) {
    if (x.j < 0) {
      dsinks[index(kernel.sink_head(x.h))] += kernel.sink(x);
      return;
    }
    const Addend at = kernel.bias_place(x);
    const auto on = [&](std::size_t axis, Index n) { return shape[axis] == 1 ? 0 : n; };
    const Index n =
        ((on(0, at.b) * shape[1] + on(1, at.h)) * shape[2] + on(2, at.i)) * shape[3] + on(3, at.j);
    dbias[index(n)] += kernel.bias(x);
  });
  for (std::size_t n = 0; n < dbias.size(); ++n) {
    set_value(builder, "dbias", static_cast<Index>(n), dbias[n]);
  }
  for (std::size_t h = 0; h < dsinks.size(); ++h) {
    set_value(builder, "dsinks", static_cast<Index>(h), dsinks[h]);
  }
}

/// A ring of four ranks with a softcap, a bias of this shape, sinks, and all right gradients.
CaseBuilder ring_case(const std::vector<Index>& bias) {
  CaseBuilder builder = random_case(DType::f32,
                                    {.batches = kBatches,
                                     .heads = kHeads,
                                     .kv_heads = 1,
                                     .queries = kRows,
                                     .keys = kRows,
                                     .head_dim = kWidth,
                                     .value_dim = kWidth},
                                    51);
  builder.spec = R"({"version": 1, "softcap": 3, "ranks": 4,)"
                 R"( "ring": {"layout": "contiguous", "order": "down"}})";
  builder.set("bias", normal(DType::f32, bias, 52));
  builder.set("sinks", normal(DType::f32, {kHeads}, 53));
  add_upstream(builder, DType::f32, 54);
  answer(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  return builder;
}

std::string words_of(const Diagnosis& diagnosis) {
  std::string all;
  for (const Explanation& one : diagnosis.explanations) all += one.id + " " + one.words + "; ";
  return all;
}

struct Line {
  const char* id;
  const char* words;  // a part of those of the form
  Kernel kernel;
};

void check_lines(const CaseBuilder& right, const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    CaseBuilder wrong = right;
    store_additions(right, line.kernel, wrong);
    const Diagnosed result = explain(wrong, "fp32-ring4");
    const std::string words = words_of(result.diagnosis);
    INFO(line.id << ", " << line.words << " among: " << words);
    CHECK(result.report.verdict == Verdict::fail);
    CHECK(result.ids().count(line.id) == 1);
    CHECK(contains(words, line.words));
  }
}

Kernel with_bias(std::function<double(const Addend&)> bias) {
  Kernel kernel;
  kernel.bias = std::move(bias);
  return kernel;
}
Kernel with_sink(std::function<double(const Addend&)> sink) {
  Kernel kernel;
  kernel.sink = std::move(sink);
  return kernel;
}
/// The right addend times a weight.
Kernel bias_times(std::function<double(const Addend&)> weight) {
  return with_bias([=](const Addend& x) { return weight(x) * Kernel().bias(x); });
}
Kernel sink_times(std::function<double(const Addend&)> weight) {
  return with_sink([=](const Addend& x) { return weight(x) * Kernel().sink(x); });
}

}  // namespace

TEST_CASE("right gradients of a bias and of sinks are explained by nothing") {
  for (const std::vector<Index>& bias : {std::vector<Index>{kBatches, kHeads, kRows, kRows},
                                         {1, kHeads, kRows, kRows},
                                         {kRows},
                                         {kHeads, kRows, 1}}) {
    const CaseBuilder right = ring_case(bias);
    CaseBuilder plain = right;
    store_additions(right, {}, plain);
    const Diagnosed result = explain(plain, "fp32-ring4");
    CHECK(result.report.verdict == Verdict::pass);
    CHECK(result.diagnosis.explanations.empty());
  }
}

TEST_CASE("mistakes of the gradient of a bias are named, whatever it is added up over") {
  for (const std::vector<Index>& bias :
       {std::vector<Index>{kBatches, kHeads, kRows, kRows}, {1, kHeads, kRows, kRows}}) {
    check_lines(ring_case(bias),
                {{"DQ-ZERO", "dbias is zero", bias_times([](const Addend&) { return 0; })},
                 {"GAIN", "dbias twice", bias_times([](const Addend&) { return 2; })},
                 {"SCALE", "times the scale", bias_times([](const Addend&) { return 0.5; })},
                 {"SOFTCAP-ORDER", "under the softcap",
                  bias_times([](const Addend& x) { return x.derivative; })},
                 {"DELTA", "dbias: D is left out",
                  with_bias([](const Addend& x) { return x.p * (x.dp + x.dlse); })},
                 {"LSE-GRAD", "dbias: the gradient of the lse is ignored",
                  with_bias([](const Addend& x) { return x.p * (x.dp - x.D); })},
                 {"TAIL", "the last tile of keys is lost (tiles of 8)",
                  bias_times([](const Addend& x) { return x.j < 8; })},
                 {"RING-HOPS", "of the last rank alone",
                  bias_times([](const Addend& x) { return x.i >= 9; })},
                 {"RING-STALE", "of the rank's own queries alone",
                  bias_times([](const Addend& x) { return x.i / 3 == x.j / 3; })}});
  }
}

TEST_CASE("a mistake of a bias gradient beside one more spoilt element is refuted") {
  const CaseBuilder right = ring_case({kBatches, kHeads, kRows, kRows});
  CaseBuilder wrong = right;
  store_additions(right, bias_times([](const Addend&) { return 2; }), wrong);
  REQUIRE(contains(words_of(explain(wrong, "fp32-ring4").diagnosis), "dbias twice"));
  set_value(wrong, "dbias", 5, 3.25);
  CHECK_FALSE(contains(words_of(explain(wrong, "fp32-ring4").diagnosis), "dbias twice"));
}

TEST_CASE("a bias gradient stored in the wrong place is named") {
  const auto placed = [](std::function<Addend(Addend)> place) {
    Kernel kernel;
    kernel.bias_place = std::move(place);
    return kernel;
  };
  check_lines(ring_case({1, kHeads, kRows, kRows}),
              {{"BIAS-OFFSET", "one head on", placed([](Addend x) {
                  x.h = (x.h + 1) % kHeads;
                  return x;
                })},
               {"BIAS-OFFSET", "transposed", placed([](Addend x) {
                  std::swap(x.i, x.j);
                  return x;
                })},
               {"BIAS-OFFSET", "the key's place in its shard", placed([](Addend x) {
                  x.j %= 3;
                  return x;
                })}});
}

TEST_CASE("sums over broadcast axes that are overwritten or averaged are named") {
  check_lines(ring_case({1, 1, kRows, kRows}),
              {{"GQA-GRAD", "of the last head alone",
                bias_times([](const Addend& x) { return x.h == kHeads - 1; })},
               {"GQA-GRAD", "of the first batch entry alone",
                bias_times([](const Addend& x) { return x.b == 0; })},
               {"GQA-GRAD", "the last of all that are added alone",
                bias_times([](const Addend& x) { return x.h == kHeads - 1 && x.b == 1; })},
               {"GQA-GRAD", "the mean over every head",
                bias_times([](const Addend&) { return 1.0 / kHeads; })}});
}

TEST_CASE("mistakes of the gradient of sinks are named") {
  Kernel shifted;
  shifted.sink_head = [](Index h) { return (h + 1) % kHeads; };
  check_lines(
      ring_case({kRows}),
      {{"SINK", "dsinks: the sign", sink_times([](const Addend&) { return -1; })},
       {"DQ-ZERO", "dsinks is zero", sink_times([](const Addend&) { return 0; })},
       {"SINK", "dsinks once a rank", sink_times([](const Addend&) { return 4; })},
       {"SINK", "of the last query alone",
        sink_times([](const Addend& x) { return x.i == kRows - 1; })},
       {"RING-HOPS", "dsinks of the last rank alone",
        sink_times([](const Addend& x) { return x.i >= 9; })},
       {"SINK", "the weight of the sink is left out",
        with_sink([](const Addend& x) { return -(x.D - x.dlse); })},
       {"SINK", "of the head before", shifted},
       {"DELTA", "dsinks: D is left out", with_sink([](const Addend& x) { return x.p * x.dlse; })},
       {"LSE-GRAD", "dsinks: the gradient of the lse is ignored",
        with_sink([](const Addend& x) { return -x.p * x.D; })},
       {"LSE-GRAD", "dsinks: the sign of the gradient of the lse",
        with_sink([](const Addend& x) { return -x.p * (x.D + x.dlse); })}});
}

TEST_CASE("a mistake in D that all gradients share is one mistake") {
  const CaseBuilder right = ring_case({1, kHeads, kRows, kRows});
  CaseBuilder wrong = right;
  Kernel kernel;
  kernel.bias = [](const Addend& x) { return x.p * (x.dp + x.dlse); };
  kernel.sink = [](const Addend& x) { return x.p * x.dlse; };
  store_additions(right, kernel, wrong);
  const Case input = right.assemble();
  const Problem& p = input.problem;
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
  const std::vector<Index> shape_q{kBatches, kHeads, kRows, kWidth},
      shape_k{kBatches, 1, kRows, kWidth};
  std::vector<double> dq(index(kBatches * kHeads * kRows * kWidth)),
      dk(index(kBatches * kRows * kWidth));
  for_each_addend(input, [&](const Addend& x) {
    if (x.j < 0) return;
    const double ds = scale * x.p * (x.dp + x.dlse) * x.derivative;
    for (Index d = 0; d < kWidth; ++d) {
      dq[index(((x.b * kHeads + x.h) * kRows + x.i) * kWidth + d)] += ds * p.k.at(x.b, 0, x.j, d);
      dk[index((x.b * kRows + x.j) * kWidth + d)] += ds * p.q.at(x.b, x.h, x.i, d);
    }
  });
  for (std::size_t n = 0; n < dq.size(); ++n) set_value(wrong, "dq", static_cast<Index>(n), dq[n]);
  for (std::size_t n = 0; n < dk.size(); ++n) set_value(wrong, "dk", static_cast<Index>(n), dk[n]);
  const Diagnosed result = explain(wrong, "fp32-ring4");
  INFO(words_of(result.diagnosis));
  REQUIRE(result.diagnosis.functions == 1);
  CHECK(result.diagnosis.explanations.front().id == "DELTA");
  CHECK(result.diagnosis.explanations.front().words ==
        "D is left out, in dbias and dsinks as well");
}
