// Mistakes of the backward pass, planted by the plain definition, are named.
#include "oracle/diagnose/gradient_search.hpp"

#include "oracle/diagnose/fit.hpp"
#include "oracle/diagnose/gradient_field.hpp"
#include "oracle/diagnose/locate_gradients.hpp"

#include "tests/unit/diagnose/planted.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr Index kHeads = 4, kKvHeads = 2, kRows = 20, kWidth = 6;

/// Right gradients of a dense problem in binary64, with handles for what can go wrong.
struct PlainBackward {
  bool with_D = true, ones = false;
  double scale_of_q = 1, share_of_group = 1;
  std::function<bool(Index i, Index j)> counts = [](Index, Index) { return true; };
  bool exchanged = false;
};

struct PlainRow {
  std::vector<double> p;
  double D = 0;
};

PlainRow plain_row(const Problem& p, const Tensor& dout, Index h, Index i, bool ones) {
  PlainRow row{std::vector<double>(static_cast<std::size_t>(kRows)), 0};
  double sum = 0;
  for (Index j = 0; j < kRows; ++j) {
    double dot = 0;
    for (Index d = 0; d < kWidth; ++d) dot += p.q.at(0, h, i, d) * p.k.at(0, p.kv_head(h), j, d);
    const double weight = std::exp(dot / std::sqrt(static_cast<double>(kWidth)));
    row.p[static_cast<std::size_t>(j)] = weight;
    sum += weight;
  }
  for (Index j = 0; j < kRows; ++j) {
    row.p[static_cast<std::size_t>(j)] /= sum;
    for (Index c = 0; c < kWidth; ++c) {
      row.D += row.p[static_cast<std::size_t>(j)] * p.v.at(0, p.kv_head(h), j, c) *
               (ones ? 1.0 : dout.at(0, h, i, c));
    }
  }
  return row;
}

void store_gradients(const Case& input, const PlainBackward& kernel, CaseBuilder& builder) {
  const Problem& p = input.problem;
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
  std::vector<double> dq(kHeads * kRows * kWidth), dk(kKvHeads * kRows * kWidth), dv(dk.size());
  for (Index h = 0; h < kHeads; ++h) {
    for (Index i = 0; i < kRows; ++i) {
      const PlainRow row = plain_row(p, input.dout, h, i, kernel.ones);
      for (Index j = 0; j < kRows; ++j) {
        if (!kernel.counts(i, j)) continue;
        const double prob = row.p[static_cast<std::size_t>(j)];
        double dp = 0;
        for (Index c = 0; c < kWidth; ++c) {
          const double upstream = kernel.ones ? 1.0 : input.dout.at(0, h, i, c);
          dp += upstream * p.v.at(0, p.kv_head(h), j, c);
          dv[static_cast<std::size_t>((p.kv_head(h) * kRows + j) * kWidth + c)] +=
              kernel.share_of_group * prob * upstream;
        }
        const double ds = prob * (dp - (kernel.with_D ? row.D : 0));
        for (Index d = 0; d < kWidth; ++d) {
          dq[static_cast<std::size_t>((h * kRows + i) * kWidth + d)] +=
              scale * kernel.scale_of_q * ds * p.k.at(0, p.kv_head(h), j, d);
          dk[static_cast<std::size_t>((p.kv_head(h) * kRows + j) * kWidth + d)] +=
              kernel.share_of_group * scale * ds * p.q.at(0, h, i, d);
        }
      }
    }
  }
  if (kernel.exchanged) std::swap(dk, dv);
  const auto set = [&](const char* name, const std::vector<double>& values, Index heads) {
    builder.set(name, make_tensor(DType::f32, {1, heads, kRows, kWidth}, [&](Index n) {
                  return round_nearest(DType::f32, values[static_cast<std::size_t>(n)]);
                }));
  };
  set("dq", dq, kHeads);
  set("dk", dk, kKvHeads);
  set("dv", dv, kKvHeads);
}

CaseBuilder backward_case() {
  CaseBuilder builder = random_case(DType::f32,
                                    {.batches = 1,
                                     .heads = kHeads,
                                     .kv_heads = kKvHeads,
                                     .queries = kRows,
                                     .keys = kRows,
                                     .head_dim = kWidth,
                                     .value_dim = kWidth},
                                    21);
  builder.set("dout", normal(DType::f32, {1, kHeads, kRows, kWidth}, 30));
  answer(builder, DType::f32);
  return builder;
}

}  // namespace

TEST_CASE("planted mistakes of the backward pass are named, right gradients are not") {
  struct Line {
    const char* id;
    PlainBackward kernel;
  };
  PlainBackward zero, unscaled, without_D, ones, mean, tail, middle, gain, exchanged;
  zero.scale_of_q = 0;
  unscaled.scale_of_q = std::sqrt(static_cast<double>(kWidth));
  without_D.with_D = false;
  ones.ones = true;
  mean.share_of_group = 0.5;
  tail.counts = [](Index, Index j) { return j < 16; };
  middle.counts = [](Index, Index j) { return j / 8 != 1; };
  gain.scale_of_q = 1.01;
  exchanged.exchanged = true;
  const CaseBuilder builder = backward_case();
  const Case input = builder.assemble();
  CaseBuilder right = builder;
  store_gradients(input, {}, right);
  // From the exact forward pass, and from the kernel's own out and lse.
  const std::string contract = GENERATE("fp32", "fp32+isolated");
  INFO(contract);
  const Diagnosed none = explain(right, contract);
  CHECK(none.report.verdict == Verdict::pass);
  CHECK(none.ids().empty());
  for (const Line& line :
       {Line{"DQ-ZERO", zero}, Line{"SCALE", unscaled}, Line{"DELTA", without_D},
        Line{"DOUT-IGNORED", ones}, Line{"GQA-GRAD", mean}, Line{"TAIL", tail},
        Line{"BLOCK-SKIP", middle}, Line{"GAIN", gain}, Line{"DKV-SWAP", exchanged}}) {
    CaseBuilder wrong = builder;
    store_gradients(input, line.kernel, wrong);
    const Diagnosed result = explain(wrong, contract);
    INFO(line.id);
    REQUIRE(result.report.verdict == Verdict::fail);
    CHECK(result.ids().count(line.id) == 1);
  }
}

TEST_CASE("a fitted factor that right gradients may have as well explains nothing") {
  CaseBuilder builder = backward_case();
  store_gradients(builder.assemble(), {}, builder);
  // The largest elements of both heads, up and down in turns: just refused, and far less than what
  // a fitted factor leaves open.
  std::vector<std::pair<double, Index>> by_size;
  for (Index n = 0; n < kKvHeads * kRows * kWidth; ++n) {
    by_size.emplace_back(-std::abs(value_at(builder, "dv", n)), n);
  }
  std::sort(by_size.begin(), by_size.end());
  Diagnosed result;
  for (double off = 0x1p-24; result.report.verdict != Verdict::fail; off *= 1.03125) {
    CaseBuilder wrong = builder;
    for (std::size_t n = 0; n < 8; ++n) {
      const Index place = by_size[n].second;
      set_value(wrong, "dv", place,
                value_at(builder, "dv", place) * (n % 2 == 0 ? 1 + off : 1 - off));
    }
    const Report report = judge(wrong, "fp32");
    if (report.find(AnswerKind::dv)->tally.failed >= 4) result = explain(wrong, "fp32");
  }
  CHECK(result.ids().count("GAIN") == 0);
  for (Index n = 0; n < kKvHeads * kRows * kWidth; ++n) {
    set_value(builder, "dv", n, 1.001 * value_at(builder, "dv", n));
  }
  CHECK(explain(builder, "fp32").ids().count("GAIN") == 1);
}

TEST_CASE("gradients of a neighbour's shard are named where stripes have several rows") {
  CaseBuilder wrong = backward_case();
  wrong.spec = R"({"version": 1, "ranks": 2})";
  store_gradients(wrong.assemble(), {}, wrong);
  std::vector<double> sum;
  for (Index n = 0; n < kKvHeads * kRows * kWidth; ++n) {
    sum.push_back(value_at(wrong, "dk", n) + value_at(wrong, "dv", n));
  }
  // Rank (j / 2) mod 2 has key j; the same place of the other rank's shard is two rows on or back.
  for (Index n = 0; n < kKvHeads * kRows * kWidth; ++n) {
    const Index by = n / kWidth % kRows / 2 % 2 == 0 ? 2 : -2;
    set_value(wrong, "dk", n, sum[static_cast<std::size_t>(n)]);
    set_value(wrong, "dv", n, sum[static_cast<std::size_t>(n + by * kWidth)]);
  }
  std::set<std::string> words;
  const Diagnosed result = explain(wrong, "fp32-ring2");
  for (const Explanation& one : result.diagnosis.explanations) words.insert(one.words);
  CHECK(words.count("dk holds dk + dv, dv holds dk + dv of the next rank's shard (striped, 2 rows "
                    "at a time)") == 1);
  for (const Explanation& one : result.diagnosis.explanations) CHECK_FALSE(one.estimated);
}

TEST_CASE("refused gradients are found by head, key and column") {
  CaseBuilder builder = backward_case();
  store_gradients(builder.assemble(), {}, builder);
  // KV head 1, key 7, column 3.
  const Index element = (1 * kRows + 7) * kWidth + 3;
  set_value(builder, "dk", element, value_at(builder, "dk", element) + 0.25);
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const Report report = check(input, contract, {});
  const std::vector<GradientLocation> found =
      locate_gradients(input, contract, gradient_fields(input, contract, {}, report));
  REQUIRE(found.size() == 1);
  CHECK(found.front().kind == AnswerKind::dk);
  CHECK(found.front().refused == 1);
  CHECK(found.front().places_refused == 1);
  std::set<std::string> words;
  for (const Finding& finding : found.front().findings) words.insert(finding.words);
  CHECK(words.count("key = 7") == 1);
}

TEST_CASE("a row the theory says nothing about leaves the others to be searched") {
  CaseBuilder builder = backward_case();
  std::vector<double> visible(kRows, 1);
  visible[5] = 0;  // a key that nobody sees: its gradients are zeros, and judged
  builder.set("mask", make_tensor(DType::boolean, {1, 1, 1, kRows},
                                  [&](Index n) { return visible[static_cast<std::size_t>(n)]; }));
  answer(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  set_value(builder, "q", 3 * kWidth, HUGE_VAL);
  const auto fields = [&](const Case& input, const Report& report) {
    return gradient_fields(input, read_contract("fp32", input.problem.spec), {}, report);
  };
  const Case right = builder.assemble();
  const Report passed = check(right, read_contract("fp32", right.problem.spec), {});
  REQUIRE(passed.find(AnswerKind::dk) != nullptr);
  CHECK(passed.find(AnswerKind::dk)->verdict != Verdict::fail);
  std::set<Index> judged[kKvHeads];  // keys
  for (const GradientField& field : fields(right, passed)) {
    if (field.kind != AnswerKind::dk) continue;
    for (const Row& key : field.rows) judged[key.h].insert(key.i);
  }
  CHECK(judged[0] == std::set<Index>{5});
  CHECK(judged[1].size() == kRows);
  set_value(builder, "dk", 5 * kWidth, 0.25);  // of the key nobody sees
  const Diagnosed wrong = explain(builder, "fp32");
  CHECK(wrong.report.verdict == Verdict::fail);
  CHECK(fit(builder.assemble(), "fp32", {}).declared.verdict == Verdict::fail);
}
