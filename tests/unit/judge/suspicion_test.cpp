// The probabilistic level: it sees a bias that no deterministic bound refuses, is silent about
// honest kernels, and never makes more of a verdict than SUSPECT.
#include <cmath>
#include <functional>

#include "oracle/contract/probabilistic.hpp"
#include "oracle/contract/probable_sums.hpp"
#include "oracle/judge/suspicion.hpp"
#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr std::int64_t kQueries = 96, kKeys = 512, kColumns = 64;

/// Attention in double precision, but for the cast of P and the storage of the output.
void answer_with_cast(CaseBuilder& builder, const std::function<double(double)>& cast,
                      DType out_type) {
  const Case input = builder.assemble();
  const Problem& p = input.problem;
  builder.set("out",
              make_tensor(out_type, {1, 1, kQueries, kColumns}, [](std::int64_t) { return 0; }));
  for (std::int64_t i = 0; i < kQueries; ++i) {
    std::vector<double> weight(kKeys);
    double largest = -HUGE_VAL, sum = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      double dot = 0;
      for (std::int64_t t = 0; t < p.head_dim; ++t) dot += p.q.at(0, 0, i, t) * p.k.at(0, 0, j, t);
      weight[static_cast<std::size_t>(j)] = dot / std::sqrt(static_cast<double>(p.head_dim));
      largest = std::max(largest, weight[static_cast<std::size_t>(j)]);
    }
    for (double& w : weight) sum += w = std::exp(w - largest);
    for (double& w : weight) w = cast(w);
    for (std::int64_t c = 0; c < kColumns; ++c) {
      double out = 0;
      for (std::int64_t j = 0; j < kKeys; ++j) {
        out += weight[static_cast<std::size_t>(j)] * p.v.at(0, 0, j, c);
      }
      set_value(builder, "out", i * kColumns + c, out / sum);
    }
  }
}

CaseBuilder long_case(unsigned seed = 3) {
  return random_case(
      DType::bf16,
      {.heads = 1, .queries = kQueries, .keys = kKeys, .head_dim = 16, .value_dim = kColumns},
      seed);
}

Report judge_probably(const CaseBuilder& builder, const std::string& contract) {
  CheckOptions options;
  options.probabilistic = true;
  return judge(builder, contract, options);
}

double nearest_bf16(double x) { return round_nearest(DType::bf16, x); }
double truncated_bf16(double x) { return round_down(DType::bf16, x); }

}  // namespace

TEST_CASE("a truncating cast of P is suspect, with outputs of 32 and of 16 bits") {
  for (const DType out_type : {DType::f32, DType::bf16}) {
    CaseBuilder builder = long_case();
    answer_with_cast(builder, truncated_bf16, out_type);
    CHECK(judge(builder, "bf16-flash").verdict == Verdict::pass);
    const Report report = judge_probably(builder, "bf16-flash");
    CHECK(report.verdict == Verdict::suspect);
    REQUIRE(report.probabilistic.has_value());
    CHECK(report.probabilistic->found.lean < -report.probabilistic->lean_bound);
    CHECK_FALSE(report.probabilistic->lean_refuted);
    CHECK(contains(report.find(AnswerKind::out)->reason, "lean"));
  }
}

TEST_CASE("a cast to nearest is not suspect") {
  for (const DType out_type : {DType::f32, DType::bf16}) {
    for (const unsigned seed : {3U, 40U, 50U}) {
      CaseBuilder builder = long_case(seed);
      answer_with_cast(builder, nearest_bf16, out_type);
      const Report report = judge_probably(builder, "bf16-flash");
      CHECK(report.verdict == Verdict::pass);
      CHECK(report.probabilistic->found.elements == kQueries * kColumns);
      CHECK(report.probabilistic->found.suspect == 0);
      CHECK(std::abs(report.probabilistic->found.lean) < report.probabilistic->lean_bound);
    }
  }
}

TEST_CASE("an element beyond its likely error is suspect although its bound accepts it") {
  CaseBuilder builder = long_case();
  answer_with_cast(builder, nearest_bf16, DType::f32);
  const Report honest = judge_probably(builder, "bf16-flash");
  REQUIRE(honest.verdict == Verdict::pass);
  // To the end of its deterministic box, in 32 bits.
  const double right = value_at(builder, "out", 5 * kColumns + 7);
  double low = right, high = right + 1;
  for (int n = 0; n < 60; ++n) {
    const double middle = round_nearest(DType::f32, low + (high - low) / 2);
    set_value(builder, "out", 5 * kColumns + 7, middle);
    (judge(builder, "bf16-flash").verdict == Verdict::pass ? low : high) = middle;
    if (round_up(DType::f32, std::nextafter(low, 1e9)) >= high) break;
  }
  set_value(builder, "out", 5 * kColumns + 7, low);
  const Report report = judge_probably(builder, "bf16-flash");
  CHECK(report.verdict == Verdict::suspect);
  CHECK(report.probabilistic->found.suspect == 1);
  CHECK(report.probabilistic->found.worst_element->column == 7);
}

TEST_CASE("what is refused stays refused, and what is not modelled is named") {
  CaseBuilder builder = long_case();
  answer_with_cast(builder, truncated_bf16, DType::bf16);
  set_value(builder, "out", 0, 100);
  CHECK(judge_probably(builder, "bf16-flash").verdict == Verdict::fail);
  answer_with_cast(builder, truncated_bf16, DType::bf16);
  const Report report =
      judge_probably(builder, R"({"base": "bf16-flash", "p": {"sum_from": "cast"}})");
  CHECK(report.verdict == Verdict::pass);
  CHECK_FALSE(report.probabilistic->not_evaluated.empty());
}

TEST_CASE("scores on a grid refute the model and not the kernel") {
  // Weights (128 + k + 0.45) / 256: no two are equal, and all casts round down.
  CaseBuilder builder = long_case();
  builder.set("q", make_tensor(DType::f64, {1, 1, kQueries, 16},
                               [](std::int64_t n) { return n % 16 == 0 ? 4 : 0; }));
  builder.set("k", make_tensor(DType::f64, {1, 1, kKeys, 16}, [](std::int64_t n) {
                const std::int64_t j = n / 16;
                if (n % 16 != 0) return 0.0;
                return j == 0 ? 0.0 : std::log((128.45 + static_cast<double>(j % 127)) / 256);
              }));
  const std::string contract = R"({"base": "bf16-flash", "inputs": {"dtype": "fp64"}})";
  answer_with_cast(builder, nearest_bf16, DType::f32);
  const Report report = judge_probably(builder, contract);
  const Suspicion& found = report.probabilistic->found;
  INFO("suspect " << found.suspect << ", lean " << found.lean << " of "
                  << report.probabilistic->lean_bound << ", drift " << found.drift << " of "
                  << std::sqrt(found.drift_scale));
  CHECK(report.verdict != Verdict::fail);
  CHECK(report.verdict != Verdict::suspect);
}

TEST_CASE("outputs that are nearly one number are rounded alike, and not suspect for it") {
  CaseBuilder builder = long_case();
  for (std::int64_t n = 0; n < kQueries * 16; ++n) {
    set_value(builder, "q", n, value_at(builder, "q", n) / 64);  // nearly equal weights
  }
  // A third of a step of bf16 above 1 in every output, which 16 bits round down.
  builder.set("v", make_tensor(DType::bf16, {1, 1, kKeys, kColumns}, [](std::int64_t n) {
                return 1 + (n / kColumns % 3 == 0 ? 0x1p-7 : 0.0);
              }));
  answer_with_cast(builder, nearest_bf16, DType::bf16);
  const Report report = judge_probably(builder, "bf16-flash");
  CHECK(std::abs(report.probabilistic->found.lean) > report.probabilistic->lean_bound);
  CHECK(report.probabilistic->lean_refuted);
  CHECK(report.verdict != Verdict::suspect);
  CHECK(report.verdict != Verdict::fail);
}

TEST_CASE("outputs at ties are not asked: errors of one sign decide which way they go") {
  // All weights are a half. Means of 1 and 1 + 2^-7, of 1 + 2^-7 and 1 + 2^-6 are ties: to even
  // one goes down and the other up, and a quotient that is a little too small takes both down.
  CaseBuilder builder = random_case(
      DType::bf16, {.heads = 1, .queries = 256, .keys = 2, .head_dim = 16, .value_dim = 4});
  builder.set("k", make_tensor(DType::bf16, {1, 1, 2, 16}, [](std::int64_t) { return 0; }));
  const auto below = [](std::int64_t c) { return c % 2 == 0 ? 1.0 : 1 + 0x1p-7; };
  builder.set("v", make_tensor(DType::bf16, {1, 1, 2, 4}, [&](std::int64_t n) {
                return below(n % 4) + (n < 4 ? 0 : 0x1p-7);
              }));
  builder.set("out", make_tensor(DType::bf16, {1, 1, 256, 4},
                                 [&](std::int64_t n) { return below(n % 4); }));
  const Report report = judge_probably(builder, "bf16-flash");
  CHECK(report.find(AnswerKind::out)->tally.failed == 0);
  CHECK(report.verdict != Verdict::suspect);
  CHECK(report.probabilistic->found.rows == 0);
}

TEST_CASE("rows with the same query count as often as it occurs") {
  const auto found = [](std::int64_t queries) {
    CaseBuilder builder = random_case(
        DType::bf16, {.heads = 1, .queries = queries, .keys = 40, .head_dim = 16, .value_dim = 2});
    for (std::int64_t n = 16; n < 16 * queries; ++n) {
      set_value(builder, "q", n, value_at(builder, "q", n % 16));
    }
    // The first row is the same in all cases, and so are keys and values.
    builder.set("k", normal(DType::bf16, {1, 1, 40, 16}, 5));
    builder.set("v", normal(DType::bf16, {1, 1, 40, 2}, 6));
    answer(builder, DType::bf16);
    return judge_probably(builder, "bf16-flash").probabilistic->found;
  };
  const Suspicion one = found(1), many = found(8);
  REQUIRE(one.rows == 1);
  CHECK(many.rows == 8);
  CHECK(std::abs(many.variance - 8 * 8 * one.variance) <= 0x1p-30 * many.variance);
  CHECK(std::abs(many.drift_scale - 8 * one.drift_scale) <= 0x1p-30 * many.drift_scale);
}

TEST_CASE("the factor of the probabilistic level grows with the number of elements") {
  CHECK(std::round(10 * azuma_factor(0x1p-30, 1)) == 66);
  CHECK(std::round(10 * azuma_factor(0x1p-30, 1e4)) == 78);
  CHECK(std::round(10 * azuma_factor(0x1p-30, 1e6)) == 84);
}

TEST_CASE("a sum that rounds to nearest is hardly ever off by its bound: (39a)") {
  // Binary64 but for the stored output, so that only what is planted is an error.
  CaseBuilder builder = long_case();
  answer_with_cast(
      builder, [](double x) { return x; }, DType::f32);
  REQUIRE(judge(builder, "bf16-io+block512").verdict == Verdict::pass);
  CHECK(judge_probably(builder, "bf16-io+block512").verdict == Verdict::pass);
  const Case input = builder.assemble();
  const Contract contract = read_contract("bf16-io+block512", input.problem.spec);
  CHECK(lists_sums(contract));
  CHECK_FALSE(lists_sums(read_contract("bf16-flash", input.problem.spec)));  // matrix units
  CHECK_FALSE(lists_sums(read_contract("bf16-io-ring4+block512", input.problem.spec)));
  const SuspicionRules rules(contract, kQueries * kColumns);
  const HeadTruth head(input.problem, 0, 0, Precision::fast);
  RowTruth row;
  const HeadTruth::RowId id{0, 40};
  head.rows({&id, 1}, &row);
  RowBound bound;
  bound_row(contract, input.problem, row, head.values(), head.values_stride(), false, bound);
  ProbabilisticBound probable;
  bound_row_probabilistic(rules.contract, rules.exact_casts, input.problem, row, head.values(),
                          head.values_stride(), bound, rules.lambda, probable);
  double sum = 0, likely = 0;
  for (std::size_t c = 0; c < bound.out.size(); ++c) {
    sum += bound.out[c];
    likely += probable.out[c];
    CHECK(probable.out[c] <= bound.out[c]);
  }
  CHECK(likely < 0.8 * sum);
}

namespace {

/// A row of a case under a contract, with its bounds.
struct BoundedOut {
  Case input;
  Contract contract;
  SuspicionRules rules;
  HeadTruth head;
  RowTruth row;
  RowBound bound;
  ProbabilisticBound probable;

  BoundedOut(const CaseBuilder& builder, const std::string& name)
      : input(builder.assemble()),
        contract(read_contract(name, input.problem.spec)),
        rules(contract, 10),
        head(input.problem, 0, 0, Precision::fast) {
    const HeadTruth::RowId id{0, 0};
    head.rows({&id, 1}, &row);
    bound_row(contract, input.problem, row, head.values(), head.values_stride(), false, bound);
    bound_row_probabilistic(rules.contract, rules.exact_casts, input.problem, row, head.values(),
                            head.values_stride(), bound, rules.lambda, probable);
  }

  Suspicion suspicion() const {
    Suspicion found;
    add_suspicion(rules, input.problem, row, head.values(), head.values_stride(), bound,
                  input.find(AnswerKind::out)->tensor, output_rule(contract, contract.out.dtype),
                  found);
    return found;
  }
};

}  // namespace

TEST_CASE("what a row adds to the lean of out is (40), read literally") {
  CaseBuilder builder =
      random_case(DType::bf16, {.heads = 1, .queries = 1, .keys = 40, .value_dim = 5});
  answer(builder, DType::bf16);
  set_value(builder, "out", 2, 1.5 * value_at(builder, "out", 2));
  const BoundedOut x(builder, "bf16-flash");
  const Suspicion found = x.suspicion();
  Suspicion right{.remainder = x.probable.remainder,
                  .variance = x.probable.variance,
                  .drift = x.probable.drift,
                  .drift_scale = x.probable.drift_scale};
  for (std::int64_t c = 0; c < 5; ++c) {
    const Certified& o = x.row.out[static_cast<std::size_t>(c)];
    const double g = o.hi < 0 ? -1 : 1, a = value_at(builder, "out", c);
    right.lean += g * (a - o.hi);
    right.remainder += o.radius + 0x1p-134 + 0x1p-50 * std::abs(a - o.hi);
    right.variance +=
        std::pow(0x1p-8 * (std::abs(o.hi) + x.bound.out[static_cast<std::size_t>(c)]), 2);
    right.drift += g * (round_nearest(DType::bf16, o.hi) - o.hi);
    right.drift_scale += std::pow(0x1p-8 * o.hi, 2);
  }
  const auto close = [](double a, double b) { return std::abs(a - b) <= 0x1p-40 * std::abs(b); };
  CHECK(x.probable.remainder > 0x1p-20);
  CHECK(found.rows == 1);
  CHECK(found.elements == 5);
  CHECK(close(found.lean, right.lean));
  CHECK(close(found.remainder, right.remainder));
  CHECK(close(found.variance, right.variance));
  CHECK(close(found.drift, right.drift));
  CHECK(close(found.drift_scale, right.drift_scale));
}

TEST_CASE("a row that may be stored as infinity is not in the lean") {
  CaseBuilder builder =
      random_case(DType::f16, {.heads = 1, .queries = 1, .keys = 40, .value_dim = 2});
  answer(builder, DType::f16);
  CHECK(BoundedOut(builder, "fp16-flash").suspicion().rows == 1);
  builder.set("v", make_tensor(DType::f16, {1, 1, 40, 2},
                               [](std::int64_t n) { return n % 2 == 0 ? 65504.0 : 1.0; }));
  answer(builder, DType::f16);
  const Suspicion found = BoundedOut(builder, "fp16-flash").suspicion();
  CHECK(found.rows == 0);
  CHECK(found.variance == 0);
}

TEST_CASE("roundings on a path are counted, and equal addends end the model") {
  Accumulator plain;
  plain.u = 0x1p-24;
  // 99 additions and 3 rescalings, each a little more than one roundoff.
  const double path = path_roundings(plain, Terms::contiguous(100), 3);
  CHECK(std::round(path) == 102);
  Accumulator blocked;
  blocked.model = Accumulator::Model::blocked;
  blocked.block = 10;
  blocked.u = 0x1p-24;
  blocked.of = {plain};
  CHECK(path_roundings(blocked, Terms::contiguous(100), 0) < 25);
  Accumulator unit;
  unit.model = Accumulator::Model::mma;
  CHECK_FALSE(rounds_to_nearest(unit));
  CHECK(std::round(probable_sum(8, 0x1p-24, 0, 100) * 0x1p24) == 80);
  CHECK(mostly_equal(std::vector<double>{1, 2, 1, 1}));
  CHECK_FALSE(mostly_equal(std::vector<double>{1, 2, 1, 3}));
  CHECK_FALSE(mostly_equal(std::vector<double>{}));
}
