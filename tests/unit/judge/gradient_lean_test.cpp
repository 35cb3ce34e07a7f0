// The aggregate test of gradients, (41): it sees a cast of P or dS that truncates, which no bound
// of elements does, and is silent about kernels that round to nearest, whatever inputs repeat.
#include <cmath>
#include <functional>

#include "oracle/contract/probabilistic.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
using Cast = std::function<double(double)>;
constexpr Index kRows = 96, kWidth = 32;

double nearest(double x) { return round_nearest(DType::bf16, x); }
double truncated(double x) {
  return x < 0 ? -round_down(DType::bf16, -x) : round_down(DType::bf16, x);
}

/// What a kernel casts, and how; everything else is binary64.
struct Kernel {
  Cast p = nearest, ds = nearest, dp = [](double x) { return x; };
};

/// One head of attention and its backward pass, D from the stored output.
void answer_with(CaseBuilder& builder, const Kernel& kernel, DType type) {
  const Case input = builder.assemble();
  const Problem& p = input.problem;
  const auto zeros = [&](const char* name, DType of) {
    builder.set(name, make_tensor(of, {1, 1, kRows, kWidth}, [](Index) { return 0; }));
  };
  zeros("out", DType::bf16);
  std::vector<double> dq(kRows * kWidth), dk(dq.size()), dv(dq.size());
  const double scale = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(kWidth)));
  for (Index i = 0; i < kRows; ++i) {
    std::vector<double> score(kRows, -HUGE_VAL), out(kWidth);
    double max = -HUGE_VAL, sum = 0, D = 0;
    for (Index j = 0; j < kRows; ++j) {
      if (!visible(p, 0, 0, i, j)) continue;
      double dot = 0;
      for (Index d = 0; d < kWidth; ++d) dot += p.q.at(0, 0, i, d) * p.k.at(0, 0, j, d);
      score[static_cast<std::size_t>(j)] = scale * dot;
      max = std::max(max, scale * dot);
    }
    for (Index j = 0; j < kRows; ++j) {
      const double weight = std::exp(score[static_cast<std::size_t>(j)] - max);
      sum += weight;
      for (Index c = 0; c < kWidth; ++c) {
        out[static_cast<std::size_t>(c)] += kernel.p(weight) * p.v.at(0, 0, j, c);
      }
    }
    for (Index c = 0; c < kWidth; ++c) {
      const double o = nearest(out[static_cast<std::size_t>(c)] / sum);
      set_value(builder, "out", i * kWidth + c, o);
      D += o * input.dout.at(0, 0, i, c);
    }
    for (Index j = 0; j < kRows; ++j) {
      const double weight = std::exp(score[static_cast<std::size_t>(j)] - max) / sum;
      if (weight == 0) continue;
      double dp = 0;
      for (Index c = 0; c < kWidth; ++c) dp += input.dout.at(0, 0, i, c) * p.v.at(0, 0, j, c);
      const double ds = kernel.ds(weight * (kernel.dp(dp) - D));
      for (Index c = 0; c < kWidth; ++c) {
        dv[static_cast<std::size_t>(j * kWidth + c)] +=
            kernel.p(weight) * input.dout.at(0, 0, i, c);
        dq[static_cast<std::size_t>(i * kWidth + c)] += scale * ds * p.k.at(0, 0, j, c);
        dk[static_cast<std::size_t>(j * kWidth + c)] += scale * ds * p.q.at(0, 0, i, c);
      }
    }
  }
  const std::pair<const char*, const std::vector<double>*> all[] = {
      {"dq", &dq}, {"dk", &dk}, {"dv", &dv}};
  for (const auto& [name, values] : all) {
    zeros(name, type);
    for (std::size_t n = 0; n < values->size(); ++n) {
      set_value(builder, name, static_cast<Index>(n), (*values)[n]);
    }
  }
}

CaseBuilder one_head(unsigned seed, bool causal = false) {
  CaseBuilder builder = random_case(DType::bf16,
                                    {.heads = 1,
                                     .kv_heads = 1,
                                     .queries = kRows,
                                     .keys = kRows,
                                     .head_dim = kWidth,
                                     .value_dim = kWidth},
                                    seed);
  if (causal) builder.spec = R"({"version": 1, "causal": "top_left"})";
  builder.set("dout", normal(DType::bf16, {1, 1, kRows, kWidth}, seed + 7));
  return builder;
}

/// All rows of a tensor are copies of its first one.
void repeat_first_row(CaseBuilder& builder, const char* name) {
  for (Index n = kWidth; n < kRows * kWidth; ++n) {
    set_value(builder, name, n, value_at(builder, name, n % kWidth));
  }
}

Report judge_probably(const CaseBuilder& builder, const std::string& contract = "bf16-flash") {
  CheckOptions options;
  options.probabilistic = true;
  options.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
  return judge(builder, contract, options);
}

const GradientLean& lean_of(const Report& report, AnswerKind kind) {
  for (const GradientLean& one : report.probabilistic->gradients) {
    if (one.kind == kind) return one;
  }
  throw std::logic_error("the gradient is not compared");
}

Verdict verdict_of(const Report& report, AnswerKind kind) { return report.find(kind)->verdict; }

}  // namespace

TEST_CASE("kernels that round P and dS to nearest are never suspect") {
  double largest = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    CaseBuilder builder = one_head(100 * seed, seed % 2 == 0);
    answer_with(builder, {}, seed % 3 == 0 ? DType::bf16 : DType::f32);
    const Report report = judge_probably(builder);
    CHECK(report.verdict == Verdict::pass);
    for (const AnswerKind kind : {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
      const GradientLean& one = lean_of(report, kind);
      CHECK(one.found.elements == kRows * kWidth);
      CHECK_FALSE(one.refuted);
      largest = std::max(largest, std::abs(one.found.lean) / one.bound);
    }
  }
  // Beyond 2/3 of the bound lies a probability below 2 exp(-lambda^2 / 4.5) under the model.
  CHECK(largest < 0.67);
}

TEST_CASE("a cast of dS that truncates is suspect in dq and dk, one of P in dv") {
  for (const DType type : {DType::f32, DType::bf16}) {
    CaseBuilder builder = one_head(3);
    answer_with(builder, {.ds = truncated}, type);
    CHECK(judge(builder, "bf16-flash").verdict == Verdict::pass);  // no bound of elements sees it
    const Report of_ds = judge_probably(builder);
    CHECK(of_ds.verdict == Verdict::suspect);
    CHECK(verdict_of(of_ds, AnswerKind::dq) == Verdict::suspect);
    CHECK(verdict_of(of_ds, AnswerKind::dk) == Verdict::suspect);
    CHECK(verdict_of(of_ds, AnswerKind::dv) == Verdict::pass);
    CHECK(lean_of(of_ds, AnswerKind::dk).found.lean < -lean_of(of_ds, AnswerKind::dk).bound);
    CHECK(contains(of_ds.find(AnswerKind::dk)->reason, "lean"));
    answer_with(builder, {.p = truncated}, type);
    const Report of_p = judge_probably(builder);
    CHECK(verdict_of(of_p, AnswerKind::dv) == Verdict::suspect);
    CHECK(verdict_of(of_p, AnswerKind::dk) == Verdict::pass);
  }
}

TEST_CASE("a dP that is truncated to 16 bits is suspect where the bounds accept it") {
  CaseBuilder builder = one_head(5);
  answer_with(builder, {.dp = truncated}, DType::f32);
  const Report report = judge_probably(builder);
  CHECK(verdict_of(report, AnswerKind::dq) != Verdict::pass);
  CHECK(verdict_of(report, AnswerKind::dk) != Verdict::pass);
  CHECK(verdict_of(report, AnswerKind::dv) == Verdict::pass);
}

TEST_CASE("rows that repeat each other round alike, and are not suspect for it") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    for (const bool keys : {false, true}) {
      CaseBuilder builder = one_head(10 * seed);
      if (keys) {
        repeat_first_row(builder, "k");
        repeat_first_row(builder, "v");
      } else {
        repeat_first_row(builder, "q");
        repeat_first_row(builder, "dout");
      }
      answer_with(builder, {}, DType::f32);
      const Report report = judge_probably(builder);
      INFO(seed << (keys ? ", keys" : ", queries"));
      CHECK(report.verdict != Verdict::suspect);
      CHECK(report.verdict != Verdict::fail);
    }
  }
}

TEST_CASE("probabilities that are nearly one number are rounded alike, and refute the model") {
  CaseBuilder builder = one_head(7);
  for (Index n = 0; n < kRows * kWidth; ++n) {
    set_value(builder, "q", n, 0x1p-14 * value_at(builder, "q", n));  // nearly equal weights
    set_value(builder, "dout", n, std::abs(value_at(builder, "dout", n)));
  }
  answer_with(builder, {}, DType::f32);
  const Report report = judge_probably(builder);
  const GradientLean& dv = lean_of(report, AnswerKind::dv);
  CHECK(std::abs(dv.found.lean) > dv.bound);
  CHECK(dv.refuted);
  CHECK(verdict_of(report, AnswerKind::dv) == Verdict::pass);
}

TEST_CASE("what is refused stays refused, and contracts that list nothing are named") {
  CaseBuilder builder = one_head(3);
  answer_with(builder, {.ds = truncated}, DType::f32);
  set_value(builder, "dk", 5, 100);
  CHECK(verdict_of(judge_probably(builder), AnswerKind::dk) == Verdict::fail);
  answer_with(builder, {}, DType::f32);
  const auto reason = [&](const std::string& contract) {
    const Report report = judge_probably(builder, contract);
    CHECK(report.probabilistic->gradients.empty());
    return report.probabilistic->gradients_not_evaluated;
  };
  CHECK(contains(reason("bf16-eager"), "stored"));
  CHECK(contains(reason("bf16-io"), "neither P nor dS"));
  CHECK(contains(reason(R"({"base": "bf16-flash", "p": {"sum_from": "cast"}})"), "cast P"));
  CHECK(contains(reason(R"({"base": "bf16-flash", "backward": {"ds_from_p": "cast"}})"), "cast P"));
  CHECK(contains(reason(R"({"base": "bf16-flash", "backward": {"D_from": "p_dp"}})"), "products"));
}

TEST_CASE("the aggregate test of gradients is the same for every number of threads") {
  CaseBuilder builder = one_head(9, true);
  answer_with(builder, {.ds = truncated}, DType::f32);
  const auto with_threads = [&](int threads) {
    CheckOptions options;
    options.probabilistic = true;
    options.walk.threads = threads;
    options.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
    return judge(builder, "bf16-flash", options);
  };
  const Report one = with_threads(1), many = with_threads(3);
  for (std::size_t n = 0; n < 3; ++n) {
    CHECK(one.probabilistic->gradients[n].found.lean ==
          many.probabilistic->gradients[n].found.lean);
    CHECK(one.probabilistic->gradients[n].bound == many.probabilistic->gradients[n].bound);
  }
}

TEST_CASE("keys that an unknown row does not see are compared for their lean") {
  CaseBuilder builder = random_case(DType::bf16, {.queries = 9, .keys = 9});
  // Query 4 of the second head is no number, and sees keys 1, 3 and 6.
  builder.set("mask", make_tensor(DType::boolean, {1, 2, 9, 9}, [](std::int64_t n) {
                const std::int64_t h = n / 81, i = n / 9 % 9, j = n % 9;
                if (i != 4) return true;
                return h == 0 ? j == 0 : j == 1 || j == 3 || j == 6;
              }));
  add_upstream(builder, DType::bf16);
  answer_gradients(builder, DType::bf16);
  set_value(builder, "q", (1 * 9 + 4) * 4 + 2, std::numeric_limits<double>::quiet_NaN());
  CheckOptions options;
  options.probabilistic = true;
  options.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
  const auto compared = [&](std::size_t n) {
    const Report report = judge(builder, "bf16-flash", options);
    return report.probabilistic->gradients.at(n).found.elements;
  };
  CHECK(compared(0) == (2 * 9 - 1) * 4);
  CHECK(compared(1) == 6 * 4);
  CHECK(compared(2) == 6 * 3);
  options.only = {AnswerKind::dq};
  CHECK(compared(0) == (2 * 9 - 1) * 4);
}
