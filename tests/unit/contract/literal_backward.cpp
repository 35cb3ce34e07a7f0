// T2 read literally (literal_backward.hpp).
#include "tests/unit/contract/literal_backward.hpp"

#include <algorithm>
#include <cmath>

#include "tests/unit/contract/literal_gradient_row.hpp"

namespace ringproof::test {
namespace {

using namespace literal;

struct Sum {  // Gg or its like, and Ng without e^A
  Real G, N;
};

/// Budgets of a gradient with `rows` as its terms.
Sum gradient_sum(const Contract& c, const Runs& rows, Real Rb, Real G) {
  const auto& b = c.backward;
  const Real u_gp = std::max(b.ring.store_u, b.group_store_u);
  Sum sum;
  sum.G = Gamma(b.grad_acc, rows) + (Rb - 1) * hat(b.ring.acc_u) + Rb * hat(u_gp);
  if (G > 1) sum.G += (G - 1) * hat(b.ring.acc_u) + hat(u_gp);
  const double half = c.inputs.dtype == DType::f16 ? 0x1p-25 : 0;
  const Real narrow = u_gp > 0 || !b.grad_store.empty() ? std::max({b.grad_eta, b.ds_eta, half})
                                                        : static_cast<Real>(b.grad_eta);
  const Real stores = G * (Rb + (G > 1 ? 1 : 0)) + b.grad_store.size();
  sum.N = (2 * rows.n + G * Rb + b.grad_scale_roundings + 1) * b.grad_eta + stores * narrow;
  return sum;
}

class Sums {
 public:
  Sums(const Contract& contract, const GradientFixture& fixture)
      : c(contract), b(contract.backward), f(fixture), problem(fixture.problem) {}

  LiteralGradients run() {
    prepare();
    for (std::size_t j = 0; j < N; ++j) of_key[j] = key_sum(static_cast<std::int64_t>(j));
    for (std::int64_t index = 0; index < f.rows; ++index) add_row(index);
    finish();
    return std::move(result);
  }

 private:
  void prepare() {
    N = static_cast<std::size_t>(problem.keys);
    D = static_cast<std::size_t>(problem.head_dim);
    Dv = static_cast<std::size_t>(problem.value_dim);
    scale = problem.spec.scale ? fabsl(static_cast<Real>(*problem.spec.scale)) : 1 / sqrtl(D);
    s1 = std::max<Real>(1, scale);
    us = hat(c.softmax.u);
    after = b.grad_scale_roundings * us + hat(c.score.scale_const_u) + sum_hat(b.grad_store) +
            hat(c.inputs.load_u);
    result.dk.assign(N, List(D, 0));
    result.dv.assign(N, List(Dv, 0));
    of_key.resize(N);
    k_most.assign(N, 0);
    v_most.assign(N, 0);
  }

  Real partials(std::int64_t chunk, std::int64_t terms) const {
    return chunk > 0 ? ceil_div(terms, chunk) : b.ring.count;
  }
  static Real cuts(Real Rb) { return Rb > 1 ? 2 * Rb - 1 : 0; }
  Real GV(std::size_t j) const { return of_key[j].G + hat(c.inputs.load_u_do); }
  Real Ak(std::size_t j) const { return of_key[j].G + after; }

  Sum key_sum(std::int64_t j) const {
    const Real Rk = partials(b.ring.count_rows, problem.queries);
    const bool known = problem.spec.ring && problem.spec.ring->layout != RingLayout::striped;
    Runs rows{};
    rows.C = static_cast<Real>(problem.heads) * cuts(Rk);
    rows.dealt = b.ring.count > 1 && !known ? static_cast<Real>(b.ring.count) : 0;
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t i = 0; i < problem.queries; ++i) {
        if (!visible(problem, 0, h, i, j)) continue;
        if (rows.r.empty()) rows.at_zero = i == 0;
        const bool joins = i > 0 && visible(problem, 0, h, i - 1, j);
        if (!joins) rows.r.push_back(0);
        rows.r.back() += 1;
        rows.n += 1;
      }
    }
    return rows.n == 0 ? Sum{0, 0} : gradient_sum(c, rows, Rk, problem.heads);
  }

  void add_row(std::int64_t index) {
    result.dq.emplace_back(D, 0);
    result.dbias.emplace_back(problem.bias ? N : 0, 0);
    result.dsink.push_back(0);
    result.magnitudes.push_back({List(N, 0), List(N, 0), List(N, 0)});
    if (f.truth[static_cast<std::size_t>(index)].empty()) {
      result.dq_size.push_back(0);
      return;
    }
    GradientRow row(c, f, index);
    row.prepare();
    result.largest_budget = std::max(result.largest_budget, row.largest + row.Th());
    queries(row);
    for (std::size_t n = 0; n < row.X.size(); ++n) {
      if (row.forward.keys[n].sink) continue;
      keys(row, n);
      if (problem.bias) bias(row, n);
      magnitudes(row, n);
    }
    result.magnitudes.back().F = row.F;
    result.magnitudes.back().lists_delta = row.lists_delta;
    if (row.forward.keys.back().sink) sink(row);
  }

  void queries(const GradientRow& row) {  // (32)
    const Real Rq = partials(b.ring.count_keys, problem.keys);
    Runs terms = row.forward.runs;
    terms.C = std::max(terms.C, cuts(Rq));
    const Sum sum = gradient_sum(c, terms, Rq, 1);
    const Real Aq = sum.G + after;
    result.magnitudes.back().Aq = Aq;
    List kbar(D, 0), kbar_extent(D, 0), e(D, 0), lost(D, 0);
    Real most = 0;
    for (std::size_t n = 0; n < row.X.size(); ++n) {
      const Key& key = row.forward.keys[n];
      if (key.sink) continue;
      const Real tt = fabsl(row.dp(n) - row.D()), ff = row.factor(n), Ef = row.Ef(n);
      const Real Y = row.X[n] + row.Th() + Aq;
      const Real weight = row.pm(n, Y) * (tt * ff + ff * row.ED) +
                          row.pe(n, Y) * (tt * Ef + (ff + Ef) * row.EP[n] + Ef * row.ED) +
                          row.ge(n, false) * expl(Aq);
      for (std::size_t d = 0; d < D; ++d) {
        const Real k = f.k[static_cast<std::size_t>(key.place) * D + d];
        kbar[d] += row.p(n) * ff * k;
        kbar_extent[d] += row.p(n) * ff * fabsl(k);
        e[d] += fabsl(k) * weight;
        lost[d] += row.es(n) * fabsl(k);
      }
      most += row.dS(n) + row.ES(n) + row.es(n);
    }
    result.dq_size.push_back(s1 * expl(Aq) * most * largest(f.k));
    for (std::size_t d = 0; d < D; ++d) {
      result.dq.back()[d] =
          scale * expl(row.Lamp) * (e[d] + row.ED * (fabsl(kbar[d]) + 0x1p-30L * kbar_extent[d])) +
          expm1l(row.Lamp) * fabsl(row.g.dq[d].hi) +
          s1 * expl(Aq) * (lost[d] + sum.N + b.grad_eta * most);
    }
  }

  void keys(const GradientRow& row, std::size_t n) {  // (30), (31)
    const auto j = static_cast<std::size_t>(row.forward.keys[n].place);
    const Real of_P = row.pm(n, row.XV[n] + row.Lamp + GV(j)) + row.gv[n] * expl(GV(j));
    const Real of_S = scale * (expl(Ak(j)) * row.ES(n) + expm1l(Ak(j)) * row.dS(n)) +
                      s1 * expl(Ak(j)) * row.es(n);
    for (std::size_t d = 0; d < D; ++d) result.dk[j][d] += of_S * fabsl(row.g.q[d]);
    for (std::size_t d = 0; d < Dv; ++d) result.dv[j][d] += of_P * fabsl(row.g.dout[d]);
    k_most[j] += row.dS(n) + row.ES(n) + row.es(n);
    v_most[j] += row.p(n) + of_P;
  }

  void magnitudes(const GradientRow& row, std::size_t n) {  // (41)
    const auto j = static_cast<std::size_t>(row.forward.keys[n].place);
    LiteralMagnitudes& of_row = result.magnitudes.back();
    of_row.P[j] = row.pe(n, row.X[n] + row.Lamp + row.Th()) + row.gs[n];
    of_row.w[j] = of_row.P[j] * (row.factor(n) + row.Ef(n));
    of_row.S[j] = row.dS(n) + row.ES(n) + row.es(n);
  }

  void bias(const GradientRow& row, std::size_t n) {
    // The fixture's bias is one row for all heads and queries.
    const Real rows = f.rows;
    const Sum sum = gradient_sum(c, {rows, rows, {rows}, true, 0}, b.ring.count, 1);
    const bool summed = f.rows > 1;
    const Real G = (summed ? sum.G : 0) + sum_hat(b.grad_store);
    const Real eta = summed ? 2 * b.grad_eta + sum.N : 0;
    const Real tt = fabsl(row.dp(n) - row.D());
    result.dbias.back()[static_cast<std::size_t>(row.forward.keys[n].place)] =
        expl(G) * (row.ES(n, true) + row.es(n, true) + eta) + expm1l(G) * row.p(n) * tt;
  }

  void sink(const GradientRow& row) {  // (33)
    const std::size_t n = row.X.size() - 1;
    Runs all{};
    all.n = problem.queries;
    all.C = cuts(b.ring.count);
    all.r = {all.n};
    all.at_zero = true;
    all.dealt = b.ring.count > 1 ? static_cast<Real>(b.ring.count) : 0;
    const Sum sum = gradient_sum(c, all, b.ring.count, 1);
    const bool stored = b.mode != BackwardMode::isolated && b.p_from != ProbabilityFrom::recompute;
    const Real casts = stored ? hat(b.ds_u) + sum_hat(b.grad_store) : 0;
    const Real Ys = row.X[n] + row.Lamp + us + casts + sum.G;
    const Real eta = 2 * b.grad_eta + (casts > 0 ? b.ds_eta : 0) + sum.N / problem.queries;
    result.dsink.back() = row.pm(n, Ys) * fabsl(row.D()) + row.pe(n, Ys) * row.ED +
                          row.gs[n] * expl(Ys) * (fabsl(row.D()) + row.ED) +
                          expl(sum.G + casts) * eta;
  }

  static Real largest(const std::vector<double>& numbers) {
    Real most = 0;
    for (const double x : numbers) most = std::max(most, fabsl(x));
    return most;
  }

  void finish() {
    for (std::size_t j = 0; j < N; ++j) {
      result.dk_size.push_back(s1 * expl(Ak(j)) * k_most[j] * largest(f.q));
      result.dv_size.push_back(expl(GV(j)) * v_most[j] * largest(f.dout));
      if (of_key[j].N == 0 && of_key[j].G == 0) continue;  // no row sees it
      for (Real& x : result.dk[j]) x += s1 * expl(Ak(j)) * (of_key[j].N + b.grad_eta * k_most[j]);
      for (Real& x : result.dv[j]) x += expl(GV(j)) * (of_key[j].N + b.grad_eta * v_most[j]);
    }
  }

  const Contract& c;
  const Contract::Backward& b;
  const GradientFixture& f;
  const Problem& problem;
  std::size_t N = 0, D = 0, Dv = 0;
  Real scale = 0, s1 = 0, us = 0, after = 0;
  std::vector<Sum> of_key;
  List k_most, v_most;
  LiteralGradients result;
};

}  // namespace

LiteralGradients literal_gradients(const Contract& c, const GradientFixture& f) {
  return Sums(c, f).run();
}

}  // namespace ringproof::test
