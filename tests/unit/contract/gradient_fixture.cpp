// Rows and gradients by hand (gradient_fixture.hpp).
#include "tests/unit/contract/gradient_fixture.hpp"

#include <algorithm>

namespace ringproof::test {
namespace {

using Real = long double;
using oracle::DType;
using oracle::Tensor;

double at(const std::vector<double>& array, std::int64_t row, std::int64_t columns,
          std::int64_t c) {
  return array[static_cast<std::size_t>(row * columns + c)];
}

/// Numbers that a bound may be tested on: ordinary, large, tiny, with an offset.
std::vector<double> numbers(std::int64_t count, double scale, double offset, std::mt19937_64& g) {
  std::normal_distribution<double> normal;
  std::vector<double> result;
  for (std::int64_t n = 0; n < count; ++n) result.push_back(offset + scale * normal(g));
  return result;
}

}  // namespace

GradientFixture GradientFixture::random(std::uint64_t seed) {
  std::mt19937_64 g(seed);
  const auto pick = [&](int choices) {
    return static_cast<int>(g() % static_cast<unsigned>(choices));
  };
  GradientFixture f;
  oracle::Problem& p = f.problem;
  p.batches = p.kv_heads = 1;
  p.heads = 1 + pick(3);
  p.queries = 1 + pick(12);
  p.keys = 1 + pick(20);
  p.head_dim = std::vector<std::int64_t>{1, 4, 16}[static_cast<std::size_t>(pick(3))];
  p.value_dim = 1 + pick(6);
  p.key_length = {p.keys};
  for (std::int64_t i = 0; i < p.queries; ++i) p.position_q.push_back(i);
  for (std::int64_t j = 0; j < p.keys; ++j) p.position_k.push_back(j);
  p.document_q.assign(static_cast<std::size_t>(p.queries), 0);
  p.document_k.assign(static_cast<std::size_t>(p.keys), 0);
  f.rows = p.heads * p.queries;
  if (pick(2) == 0) p.spec.scale = pick(2) == 0 ? 0.25 : 2.0;
  if (pick(3) == 0) p.spec.causal = oracle::Causal::top_left;
  const double sharp[] = {0.3, 1, 6}, size[] = {1, 1, 1e-39, 1e3};
  f.q = numbers(f.rows * p.head_dim, sharp[pick(3)], 0, g);
  f.k = numbers(p.keys * p.head_dim, 1, 0, g);
  f.v = numbers(p.keys * p.value_dim, size[pick(4)], pick(3) == 0 ? 8 : 0, g);
  f.dout = numbers(f.rows * p.value_dim, size[pick(4)], 0, g);
  f.dlse = pick(2) == 0 ? numbers(f.rows, 2, 0, g)
                        : std::vector<double>(static_cast<std::size_t>(f.rows), 0.0);
  if (pick(3) == 0) {
    for (std::int64_t n = 0; n < p.queries * p.keys; ++n) f.mask.push_back(pick(3) != 0);
    p.mask = {DType::boolean,
              {1, 1, p.queries, p.keys},
              {0, 0, p.keys, 1},
              reinterpret_cast<const std::byte*>(f.mask.data())};
  }
  if (pick(4) == 0) p.spec.softcap = 5;
  if (pick(3) == 0) f.bias = numbers(p.keys, 1, 0, g);
  if (pick(3) == 0) f.sinks = numbers(p.heads, pick(2) == 0 ? 1 : 100, 0, g);
  f.finish();
  if (pick(4) == 0) {
    for (std::int64_t row = 0; row < f.rows; ++row) {
      const auto& truth = f.truth[static_cast<std::size_t>(row)];
      f.given_lse.push_back(truth.lse.hi + 1e-3);
      for (std::size_t c = 0; c < static_cast<std::size_t>(p.value_dim); ++c) {
        f.given_out.push_back(truth.empty() ? 0 : truth.out[c].hi * 1.01);
      }
    }
    f.finish();
  }
  return f;
}

oracle::GivenForward GradientFixture::given() const {
  if (!isolated()) return {};
  const auto bytes = [](const std::vector<double>& x) {
    return reinterpret_cast<const std::byte*>(x.data());
  };
  const std::int64_t N = problem.queries, Dv = problem.value_dim;
  oracle::GivenForward result;
  result.out = {DType::f64, {1, problem.heads, N, Dv}, {0, N * Dv, Dv, 1}, bytes(given_out)};
  result.lse = {DType::f64, {1, problem.heads, N, 1}, {0, N, 1, 0}, bytes(given_lse)};
  return result;
}

void GradientFixture::finish() {
  if (!bias.empty()) {
    problem.bias = {DType::f64,
                    {1, problem.heads, problem.queries, problem.keys},
                    {0, 0, 0, 1},
                    reinterpret_cast<const std::byte*>(bias.data())};
  }
  if (!mask.empty()) problem.mask.data = reinterpret_cast<const std::byte*>(mask.data());
  truth.assign(static_cast<std::size_t>(rows), {});
  gradients.assign(static_cast<std::size_t>(rows), {});
  for (std::int64_t row = 0; row < rows; ++row) {
    forward_row(row);
    backward_row(row);
  }
}

void GradientFixture::forward_row(std::int64_t row) {
  oracle::RowTruth& t = truth[static_cast<std::size_t>(row)];
  const std::int64_t N = problem.keys, D = problem.head_dim, Dv = problem.value_dim;
  t.h = row / problem.queries;
  t.i = row % problem.queries;
  t.keys = {0, N};
  const Real scale = problem.spec.scale ? *problem.spec.scale : 1 / sqrtl(D);
  t.has_sink = !sinks.empty();
  if (t.has_sink) t.sink = sinks[static_cast<std::size_t>(t.h)];
  t.max_score = t.has_sink ? t.sink : -INFINITY;
  const auto n = static_cast<std::size_t>(N);
  for (auto* array : {&t.dot, &t.abs_dot, &t.score, &t.log_p, &t.p}) array->assign(n, 0.0);
  if (problem.spec.softcap > 0) t.capped.assign(n, 0.0);
  if (!bias.empty()) t.bias = bias;
  for (std::int64_t j = 0; j < N; ++j) {
    const auto key = static_cast<std::size_t>(j);
    t.score[key] = t.log_p[key] = -INFINITY;
    if (!visible(problem, 0, t.h, t.i, j)) continue;
    Real dot = 0, magnitude = 0;
    for (std::int64_t d = 0; d < D; ++d) {
      const Real x = static_cast<Real>(at(q, row, D, d)) * at(k, j, D, d);
      dot += x;
      magnitude += fabsl(x);
    }
    t.dot[key] = static_cast<double>(scale * dot);
    t.abs_dot[key] = static_cast<double>(scale * magnitude * (1 + 0x1p-50L));
    double score = t.dot[key];
    if (!t.capped.empty()) {
      score = t.capped[key] = problem.spec.softcap * std::tanh(score / problem.spec.softcap);
    }
    t.score[key] = bias.empty() ? score : score + bias[key];
    t.max_score = std::max(t.max_score, t.score[key]);
    ++t.visible;
  }
  if (t.empty()) return;
  Real sum = t.has_sink ? expl(static_cast<Real>(t.sink) - t.max_score) : 0;
  for (const double score : t.score) {
    if (score != -INFINITY) sum += expl(static_cast<Real>(score) - t.max_score);
  }
  const Real L = t.max_score + logl(sum);
  t.lse.hi = static_cast<double>(L);
  t.log_p_sink = static_cast<double>(t.sink - L);
  std::vector<Real> out(static_cast<std::size_t>(Dv), 0);
  for (std::size_t j = 0; j < n; ++j) {
    if (t.score[j] == -INFINITY) continue;
    t.log_p[j] = static_cast<double>(t.score[j] - L);
    const Real p = expl(t.score[j] - L);
    t.p[j] = static_cast<double>(p);
    for (std::int64_t c = 0; c < Dv; ++c) {
      out[static_cast<std::size_t>(c)] += p * at(v, static_cast<std::int64_t>(j), Dv, c);
    }
  }
  for (const Real o : out) t.out.push_back({static_cast<double>(o), 0, 0});
}

void GradientFixture::backward_row(std::int64_t row) {
  const oracle::RowTruth& t = truth[static_cast<std::size_t>(row)];
  oracle::RowGradients& g = gradients[static_cast<std::size_t>(row)];
  const std::int64_t N = problem.keys, D = problem.head_dim, Dv = problem.value_dim;
  const auto n = static_cast<std::size_t>(N);
  g.dlse = dlse[static_cast<std::size_t>(row)];
  for (std::int64_t d = 0; d < D; ++d) g.q.push_back(at(q, row, D, d));
  for (std::int64_t c = 0; c < Dv; ++c) g.dout.push_back(at(dout, row, Dv, c));
  for (auto* array : {&g.dp, &g.abs_dp, &g.ds}) array->assign(n, 0.0);
  if (problem.spec.softcap > 0) g.factor.assign(n, 1.0);
  g.dq.assign(static_cast<std::size_t>(D), {});
  if (t.empty()) return;
  Real delta = 0;
  for (std::int64_t c = 0; c < Dv; ++c) {
    delta += static_cast<Real>(at(dout, row, Dv, c)) *
             (isolated() ? at(given_out, row, Dv, c) : t.out[static_cast<std::size_t>(c)].hi);
  }
  g.D = static_cast<double>(delta);
  const Real L = isolated() ? given_lse[static_cast<std::size_t>(row)] : t.lse.hi;
  g.lse_given = isolated() ? static_cast<double>(L) : 0;
  if (isolated()) g.p.assign(n, 0.0);
  g.p_sink = t.has_sink ? static_cast<double>(expl(t.sink - L)) : 0;
  const Real scale = problem.spec.scale ? *problem.spec.scale : 1 / sqrtl(D);
  std::vector<Real> dq(static_cast<std::size_t>(D), 0);
  for (std::int64_t j = 0; j < N; ++j) {
    const auto key = static_cast<std::size_t>(j);
    if (t.score[key] == -INFINITY) continue;
    Real dp = 0, magnitude = 0;
    for (std::int64_t c = 0; c < Dv; ++c) {
      const Real x = static_cast<Real>(at(dout, row, Dv, c)) * at(v, j, Dv, c);
      dp += x;
      magnitude += fabsl(x);
    }
    g.dp[key] = static_cast<double>(dp);
    g.abs_dp[key] = static_cast<double>(magnitude);
    const Real y = t.capped.empty() ? 0 : t.capped[key] / problem.spec.softcap;
    if (!t.capped.empty()) g.factor[key] = static_cast<double>(1 - y * y);
    const Real p = isolated() ? expl(t.score[key] - L) : static_cast<Real>(t.p[key]);
    if (isolated()) g.p[key] = static_cast<double>(p);
    const Real ds = p * (dp - delta + g.dlse) * (1 - y * y);
    g.ds[key] = static_cast<double>(ds);
    for (std::int64_t d = 0; d < D; ++d) {
      dq[static_cast<std::size_t>(d)] += scale * ds * at(k, j, D, d);
    }
  }
  for (std::int64_t d = 0; d < D; ++d) {
    g.dq[static_cast<std::size_t>(d)].hi = static_cast<double>(dq[static_cast<std::size_t>(d)]);
  }
  g.dsink.hi = static_cast<double>(-g.p_sink * (delta - g.dlse));
}

}  // namespace ringproof::test
