// T2 read literally (literal_backward.hpp).
#include "tests/unit/contract/literal_backward.hpp"

#include <algorithm>
#include <cmath>

#include "tests/unit/contract/literal_row.hpp"

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
  const Real narrow =
      u_gp > 0 || !b.grad_store.empty() ? std::max(b.grad_eta, b.ds_eta) : b.grad_eta;
  const Real stores = G * (Rb + (G > 1 ? 1 : 0)) + b.grad_store.size();
  sum.N = (2 * rows.n + G * Rb + b.grad_scale_roundings + 1) * b.grad_eta + stores * narrow;
  return sum;
}

class Row {
 public:
  Row(const Contract& contract, const GradientFixture& fixture, std::int64_t row)
      : c(contract),
        f(fixture),
        t(fixture.truth[static_cast<std::size_t>(row)]),
        g(fixture.gradients[static_cast<std::size_t>(row)]),
        forward(contract, fixture.problem, t, fixture.v.data(), fixture.problem.value_dim) {
    forward.collect();
    forward.scores();
    forward.layout();
    forward.result.out.assign(t.out.size(), 0);
    us = hat(c.softmax.u);
    isolated = c.backward.mode == BackwardMode::isolated;
    const std::size_t n = forward.keys.size();
    X.assign(n, 0), XV.assign(n, 0), gs.assign(n, 0), gv.assign(n, 0), EP.assign(n, 0);
    products();
    const bool stored = !isolated && c.backward.p_from != ProbabilityFrom::recompute;
    const bool recomputed = isolated || c.backward.p_from != ProbabilityFrom::stored;
    const bool p_dp = !isolated && c.backward.D_from != DFrom::out;
    const bool out = !isolated && c.backward.D_from != DFrom::p_dp;
    Real Lam = 0;
    for (const Merge form : c.partials.merge) {
      forward.merge = forward.R > 1 ? form : Merge::none;
      forward.leak = forward.leak_growth = 0;
      forward.common_constants();
      forward.merge_constants();
      forward.absolute_terms();
      forward.lse();
      Lam = std::max(Lam, forward.result.lse);
      if (stored) use_stored(p_dp);
      if (out) ED = std::max(ED, D_from_out());
      for (const Key& k : forward.keys) {
        largest = std::max({largest, k.C, k.CL + k.B, k.A});
      }
      if (forward.R == 1) break;
    }
    if (recomputed) use_recomputed(isolated ? 0 : Lam, p_dp);
    if (isolated) {
      Real magnitude = 0;
      for (std::size_t k = 0; k < g.dout.size(); ++k) magnitude += fabsl(g.dout[k] * O(k));
      ED = expm1l(GD()) * magnitude + lost_in_dot();
    }
    const Real before = ED;
    ED = before + expm1l(us) * (fabsl(D()) + before) + c.backward.D_eta;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, XV[k] + Lamp);
  }

  const Contract& c;
  const GradientFixture& f;
  const RowTruth& t;
  const RowGradients& g;
  Literal forward;
  Real us, Lamp = 0, ED = 0, largest = 0;
  bool isolated;
  List X, XV, gs, gv, EP;

  Real p(std::size_t k) const {
    if (!isolated) return forward.keys[k].p;
    return expl(forward.keys[k].s - static_cast<Real>(g.lse_given));
  }
  Real L() const { return isolated ? static_cast<Real>(g.lse_given) : forward.L; }
  Real D() const { return static_cast<Real>(g.D) - g.dlse; }
  Real O(std::size_t column) const {
    return isolated ? f.given_out[static_cast<std::size_t>(t.h * f.problem.queries + t.i) *
                                      t.out.size() +
                                  column]
                    : t.out[column].hi;
  }
  Real dp(std::size_t k) const {
    const Key& key = forward.keys[k];
    return key.sink ? 0 : g.dp[static_cast<std::size_t>(key.place)];
  }
  Real ay(std::size_t k) const {
    const Key& key = forward.keys[k];
    return key.sink ? 0 : g.abs_dp[static_cast<std::size_t>(key.place)];
  }
  Real factor(std::size_t k) const {
    const Key& key = forward.keys[k];
    return key.sink || g.factor.empty() ? 1 : fabsl(g.factor[static_cast<std::size_t>(key.place)]);
  }
  Real Ef(std::size_t k) const {
    const Real cap = f.problem.spec.softcap;
    if (cap == 0 || forward.keys[k].sink) return 0;
    const Real y = fabsl(forward.keys[k].capped) / cap, z = forward.keys[k].eps / cap;
    return expl(4 * us) * (2 * y * z + z * z) + expm1l(4 * us) * y * y + expm1l(us) + 0x1p-50L +
           2 * expl(us) * c.backward.dp_eta;
  }
  Real Th() const { return 2 * us + hat(c.backward.ds_u) + (f.problem.spec.softcap > 0 ? us : 0); }
  Real ge(std::size_t k, bool bias) const {
    const Real F = bias ? 1 : factor(k) + Ef(k);
    return gs[k] * expl(Th()) * (fabsl(dp(k) - D()) + EP[k] + ED) * F;
  }
  Real pe(std::size_t k, Real x) const { return expl(logl(p(k)) + x); }
  Real pm(std::size_t k, Real x) const { return p(k) == 0 ? pe(k, x) : p(k) * expm1l(x); }
  Real dS(std::size_t k) const { return p(k) * fabsl(dp(k) - D()) * factor(k); }
  Real ES(std::size_t k, bool bias = false) const {  // (29)
    const Real Y = X[k] + Lamp + Th(), tt = fabsl(dp(k) - D());
    const Real ff = bias ? 1 : factor(k), E = bias ? 0 : Ef(k);
    return pm(k, Y) * tt * ff + pe(k, Y) * (tt * E + (ff + E) * (EP[k] + ED)) + ge(k, bias);
  }
  Real es(std::size_t k, bool bias = false) const {
    const Real Y = X[k] + Lamp + Th(), F = bias ? 1 : factor(k) + Ef(k);
    return (1 + c.backward.grad_store.size()) * static_cast<Real>(c.backward.ds_eta) +
           expl(Th()) *
               (static_cast<Real>(c.backward.dp_eta) * (1 + F) * (1 + pe(k, Y) + gs[k]) +
                c.backward.grad_scale_roundings * std::max(c.backward.dp_eta, c.backward.grad_eta));
  }

 private:
  Real GD() const {
    const Real dv = t.out.size();
    return Gamma(c.backward.D_acc, {dv, 0, {dv}, true, 0}) + hat(c.inputs.load_u_do);
  }
  Real Gn() const { return Gamma(c.backward.D_acc, forward.runs); }
  Real lost_in_dot() const {
    Real factors = 0;
    for (std::size_t k = 0; k < g.dout.size(); ++k) factors += 2 + fabsl(g.dout[k]) + fabsl(O(k));
    return expl(GD()) * factors * c.backward.D_eta;
  }

  void products() {  // EP
    const auto& b = c.backward;
    const Real dv = t.out.size();
    const Real Gd =
        Gamma(b.dp_acc, {dv, 0, {dv}, true, 0}) + hat(c.inputs.load_u_v) + hat(c.inputs.load_u_do);
    const Real Sd = sum_hat(b.dp_store);
    Real factors = 2 * dv;
    for (std::size_t k = 0; k < g.dout.size(); ++k) {
      Real most = 0;
      for (std::int64_t j = 0; j < f.problem.keys; ++j) {
        most = std::max(most, fabsl(f.v[static_cast<std::size_t>(j) * g.dout.size() + k]));
      }
      factors += fabsl(g.dout[k]) + most;
    }
    for (std::size_t k = 0; k < forward.keys.size(); ++k) {
      if (forward.keys[k].sink) continue;
      EP[k] = expl(Sd) * (expm1l(Gd) * ay(k) + expl(Gd) * factors * b.dp_eta) +
              expm1l(Sd) * fabsl(dp(k)) + expl(Sd) * b.dp_store.size() * b.dp_store_eta;
    }
  }

  Real eta_P() const { return c.p.eta * std::max(1.0, 1 / c.p.scale); }
  Real odd_scale() const {
    int e = 0;
    return frexp(c.p.scale, &e) == 0.5 ? 0 : 2 * std::max(us, hat(c.pv.u));
  }

  void use_recomputed(Real Lam, bool p_dp) {  // (28)
    const bool fma = c.softmax.arg == ExpArgument::fma_scaled;
    const Real nx = c.softmax.arg == ExpArgument::sub_log2 ? 3 : 1;
    const Real lam = Lam + (fma ? expm1l(2 * us) * (fabsl(L()) + Lam) : 0);
    List x(X.size()), lost(X.size());
    for (std::size_t k = 0; k < X.size(); ++k) {
      const Key& key = forward.keys[k];
      const Real eps = key.eps + 0x1p-52L * fabsl(L());
      const Real tc = forward.tc * (fabsl(key.s) + eps);
      const Real far = fabsl(key.s - L());
      const Real Xp = eps + tc + expm1l(nx * us) * (far + eps + tc + lam) + hat(c.softmax.exp_rel);
      Real cb = hat(c.p.u);
      const Real near = far + Xp + lam;
      const bool exact_powers = c.p.round == RoundMode::rn && odd_scale() == 0;
      if (exact_powers && expm1l(near) < 1) cb = std::min(cb, -log1pl(-expm1l(near)));
      cb += odd_scale();
      const Real cast = c.softmax.exp_eta * expl(cb) + eta_P();
      x[k] = c.backward.ds_from_cast ? Xp + cb : Xp;
      lost[k] = c.backward.ds_from_cast ? cast : static_cast<Real>(c.softmax.exp_eta);
      X[k] = std::max(X[k], x[k]);
      XV[k] = std::max(XV[k], Xp + cb);
      gs[k] = std::max(gs[k], lost[k]);
      gv[k] = std::max(gv[k], cast);
    }
    Lamp = std::max(Lamp, lam);
    if (!p_dp) return;
    Real products = 0;
    for (std::size_t k = 0; k < x.size(); ++k) products += pm(k, x[k] + Gn()) * fabsl(dp(k));
    ED = std::max(ED, expm1l(lam) * fabsl(g.D) + expl(lam) * products + rest(x, lost, lam));
  }

  /// 1 - Den, with the digits of a small difference.
  static Real lost_share(const Literal& w, Real H) {
    return H - w.total([](const Key& k) { return k.p * expm1l(-k.C - k.B); });
  }

  Real rest(const List& x, const List& lost, Real lam) const {  // (27a)
    Real sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (forward.keys[k].sink) continue;
      sum += (pe(k, x[k] + lam) + lost[k]) * EP[k] + lost[k] * fabsl(dp(k)) +
             (2 + fabsl(dp(k)) + EP[k]) * c.backward.D_eta;
    }
    return expl(Gn()) * sum;
  }

  void use_stored(bool p_dp) {  // (28a)
    const Literal& w = forward;
    const Real H = w.H / w.W;
    const Real Den = w.total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H;
    const Real lam =
        Den > 0
            ? std::max(log1pl(w.total([](const Key& k) { return k.p * expm1l(k.C + k.B); }) + H),
                       Den < 0.5L ? -logl(Den) : -log1pl(-lost_share(w, H)))
            : HUGE_VALL;
    const Real share = w.kappa / (w.W * Den);
    List x(X.size()), lost(X.size());
    for (std::size_t k = 0; k < X.size(); ++k) {
      const Key& key = w.keys[k];
      const Real nu = key.A - key.cast - w.Gpv - hat(c.inputs.load_u_v) +
                      (c.p.normalized == Tri::no ? w.nd : 0);
      const Real of_exp = share * (w.T + w.R) * c.softmax.exp_eta;
      Real of_cast = 0;
      if (c.p.normalized != Tri::no) of_cast = c.p.eta;
      if (c.p.normalized != Tri::yes)
        of_cast = std::max(of_cast, share * static_cast<Real>(c.p.eta) / c.p.scale);
      const Real all = of_exp * expl(nu + key.cast) + of_cast;
      x[k] = key.C + nu + (c.backward.ds_from_cast ? key.cast : 0);
      lost[k] = c.backward.ds_from_cast || c.p.u == 0 ? all : of_exp * expl(nu);
      X[k] = std::max(X[k], x[k]);
      XV[k] = std::max(XV[k], key.C + nu + key.cast);
      gs[k] = std::max(gs[k], lost[k]);
      gv[k] = std::max(gv[k], all);
    }
    Lamp = std::max(Lamp, lam);
    if (!p_dp) return;
    Real sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const Key& key = w.keys[k];
      sum +=
          key.p *
          (expm1l(key.C) * fabsl(dp(k) - g.D) +
           expl(key.C) * (expm1l(x[k] - key.C + Gn()) * fabsl(dp(k)) + expm1l(key.B) * fabsl(g.D)));
    }
    ED = std::max(ED, (sum + H * fabsl(g.D)) / Den + rest(x, lost, lam));
  }

  /// G2 of one column with the range of all keys of the head.
  Real G2(std::size_t column) const {
    const Literal& w = forward;
    Literal all = w;  // the same constants, every key of the head a visible one
    for (std::int64_t j = 0; j < f.problem.keys; ++j) {
      if (t.score[static_cast<std::size_t>(j)] != -INFINITY) continue;
      Key k = w.keys.front();
      k.sink = false;
      k.place = j;
      k.s = w.L - 1e9L;  // neither heavy nor light
      k.A = k.B = k.C = k.cast = 0;
      all.keys.push_back(k);
    }
    Key zero = w.keys.front();  // the range holds 0
    zero.sink = true;
    zero.A = zero.B = zero.C = zero.cast = 0;
    zero.s = w.L - 1e9L;
    all.keys.push_back(zero);
    return all.G2(column);
  }

  Real D_from_out() const {  // (27)
    if (t.visible == 0) return lost_in_dot();
    const Literal& w = forward;
    const std::size_t columns = t.out.size();
    const Format& format = format_of(c.out.dtype);
    const bool rn = c.out.round == RoundMode::rn;
    const Real u_out = (rn ? 1 : 2) * format.unit();
    Real eta_out = std::max(format.smallest() / (rn ? 2 : 1), 0x1p-1074);
    if (c.out.ftz) eta_out = ldexpl(1, format.min_exponent);
    const Real H = w.H / w.W;
    const Real Den = w.total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H;
    if (!(Den > 0)) return HUGE_VALL;
    Real S1 = 0, sum_g = 0, sum_G2 = 0, y = 0;
    for (std::size_t k = 0; k < columns; ++k) {
      y += static_cast<Real>(g.dout[k]) * t.out[k].hi;
      S1 += fabsl(g.dout[k] * t.out[k].hi);
      sum_g += fabsl(g.dout[k]);
      sum_G2 += fabsl(g.dout[k]) * G2(k);
    }
    Real first = 0, spread = 0, sum_ay = 0;
    for (std::size_t k = 0; k < w.keys.size(); ++k) {
      const Key& key = w.keys[k];
      first += key.p * (expm1l(key.C) * fabsl(dp(k) - y) +
                        expl(key.C) * (expm1l(key.cast) * fabsl(dp(k)) + expm1l(key.B) * fabsl(y) +
                                       expl(key.cast) * expm1l(key.A - key.cast) * ay(k)));
      spread += key.p * (expm1l(key.C) * (ay(k) + S1) +
                         expl(key.C) * (expm1l(key.A) * ay(k) + expm1l(key.B) * S1));
      sum_ay += ay(k);
    }
    const Real of_values = w.G_v * sum_ay / (w.W * Den);
    const Real K = sum_g * (w.G_1 / (w.W * Den) + w.Pt / Den);
    const Real S_O = S1 + spread / Den + of_values + H * S1 / Den + K;
    return first / Den + expm1l(w.tau_d + hat(u_out) + GD()) * S_O + of_values +
           H * fabsl(y) / Den + K + expl(hat(u_out) + GD()) * sum_G2 +
           sum_g * expl(GD()) * eta_out + lost_in_dot();
  }
};

}  // namespace

LiteralGradients literal_gradients(const Contract& c, const GradientFixture& f) {
  const Problem& problem = f.problem;
  const auto& b = c.backward;
  const auto N = static_cast<std::size_t>(problem.keys),
             D = static_cast<std::size_t>(problem.head_dim);
  const auto Dv = static_cast<std::size_t>(problem.value_dim);
  const Real scale =
      problem.spec.scale ? fabsl(static_cast<Real>(*problem.spec.scale)) : 1 / sqrtl(D);
  const Real s1 = std::max<Real>(1, scale), us = hat(c.softmax.u);
  const Real after = b.grad_scale_roundings * us + hat(c.score.scale_const_u) +
                     sum_hat(b.grad_store) + hat(c.inputs.load_u);
  const auto partials = [&](std::int64_t chunk, std::int64_t terms) -> Real {
    return chunk > 0 ? ceil_div(terms, chunk) : b.ring.count;
  };
  const auto cuts = [](Real Rb) { return Rb > 1 ? 2 * Rb - 1 : 0; };
  const bool travels = b.ring.count > 1;
  const bool known = problem.spec.ring && problem.spec.ring->layout != RingLayout::striped;
  const Real Rk = partials(b.ring.count_rows, problem.queries);
  const Real Rq = partials(b.ring.count_keys, problem.keys);
  LiteralGradients result;
  result.dk.assign(N, List(D, 0));
  result.dv.assign(N, List(Dv, 0));
  std::vector<Sum> of_key(N);
  for (std::size_t j = 0; j < N; ++j) {
    Runs rows{0,
              static_cast<Real>(problem.heads) * cuts(Rk),
              {},
              false,
              travels && !known ? static_cast<Real>(b.ring.count) : 0};
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t i = 0; i < problem.queries; ++i) {
        if (!visible(problem, 0, h, i, static_cast<std::int64_t>(j))) continue;
        const bool joins = i > 0 && visible(problem, 0, h, i - 1, static_cast<std::int64_t>(j));
        if (rows.r.empty()) rows.at_zero = i == 0;
        if (joins) {
          rows.r.back() += 1;
        } else {
          rows.r.push_back(1);
        }
        rows.n += 1;
      }
    }
    of_key[j] = gradient_sum(c, rows, Rk, problem.heads);
    if (rows.n == 0) of_key[j] = {0, 0};
  }
  List k_most(N, 0), v_most(N, 0);
  for (std::int64_t index = 0; index < f.rows; ++index) {
    result.dq.emplace_back(D, 0);
    result.dbias.emplace_back(problem.bias ? N : 0, 0);
    result.dsink.push_back(0);
    if (f.truth[static_cast<std::size_t>(index)].empty()) continue;
    const Row row(c, f, index);
    result.largest_budget = std::max(result.largest_budget, row.largest + row.Th());
    Runs keys = row.forward.runs;
    keys.C = std::max(keys.C, cuts(Rq));
    const Sum of_query = gradient_sum(c, keys, Rq, 1);
    const Real Aq = of_query.G + after;
    List kbar(D, 0), kbar_extent(D, 0), e(D, 0), lost(D, 0);
    Real most = 0;
    for (std::size_t n = 0; n < row.X.size(); ++n) {
      const Key& key = row.forward.keys[n];
      if (key.sink) continue;
      const auto j = static_cast<std::size_t>(key.place);
      const Real tt = fabsl(row.dp(n) - row.D()), ff = row.factor(n), Ef = row.Ef(n);
      const Real Y = row.X[n] + row.Th() + Aq;
      const Real weight = row.pm(n, Y) * (tt * ff + ff * row.ED) +
                          row.pe(n, Y) * (tt * Ef + (ff + Ef) * row.EP[n] + Ef * row.ED) +
                          row.ge(n, false) * expl(Aq);
      for (std::size_t d = 0; d < D; ++d) {
        const Real k = f.k[j * D + d];
        kbar[d] += row.p(n) * ff * k;
        kbar_extent[d] += row.p(n) * ff * fabsl(k);
        e[d] += fabsl(k) * weight;
        lost[d] += row.es(n) * fabsl(k);
      }
      most += row.dS(n) + row.ES(n) + row.es(n);
      // (30), (31)
      const Real Gv = of_key[j].G + hat(c.inputs.load_u_do), Ak = of_key[j].G + after;
      const Real of_P = row.pm(n, row.XV[n] + row.Lamp + Gv) + row.gv[n] * expl(Gv);
      const Real of_S =
          scale * (expl(Ak) * row.ES(n) + expm1l(Ak) * row.dS(n)) + s1 * expl(Ak) * row.es(n);
      for (std::size_t d = 0; d < D; ++d) result.dk[j][d] += of_S * fabsl(row.g.q[d]);
      for (std::size_t d = 0; d < Dv; ++d) result.dv[j][d] += of_P * fabsl(row.g.dout[d]);
      k_most[j] += row.dS(n) + row.ES(n) + row.es(n);
      v_most[j] += row.p(n) + of_P;
      if (problem.bias) {
        const Sum bias = gradient_sum(c,
                                      {static_cast<Real>(f.rows),
                                       static_cast<Real>(f.rows),
                                       {static_cast<Real>(f.rows)},
                                       true,
                                       0},
                                      b.ring.count, 1);
        const bool summed = f.rows > 1;
        const Real G = (summed ? bias.G : 0) + sum_hat(b.grad_store);
        const Real eta = summed ? 2 * b.grad_eta + bias.N : 0;
        result.dbias.back()[j] =
            expl(G) * (row.ES(n, true) + row.es(n, true) + eta) + expm1l(G) * row.p(n) * tt;
      }
    }
    for (std::size_t d = 0; d < D; ++d) {  // (32)
      result.dq.back()[d] =
          scale * expl(row.Lamp) * (e[d] + row.ED * (fabsl(kbar[d]) + 0x1p-30L * kbar_extent[d])) +
          expm1l(row.Lamp) * fabsl(row.g.dq[d].hi) +
          s1 * expl(Aq) * (lost[d] + of_query.N + b.grad_eta * most);
    }
    if (!row.forward.keys.back().sink) continue;
    // (33)
    const std::size_t n = row.X.size() - 1;
    Runs all{static_cast<Real>(problem.queries),
             cuts(b.ring.count),
             {static_cast<Real>(problem.queries)},
             true,
             travels ? static_cast<Real>(b.ring.count) : 0};
    const Sum sum = gradient_sum(c, all, b.ring.count, 1);
    const bool stored = b.mode != BackwardMode::isolated && b.p_from != ProbabilityFrom::recompute;
    const Real casts = stored ? hat(b.ds_u) + sum_hat(b.grad_store) : 0;
    const Real Ys = row.X[n] + row.Lamp + us + casts + sum.G;
    const Real eta = 2 * b.grad_eta + (casts > 0 ? b.ds_eta : 0) + sum.N / problem.queries;
    result.dsink.back() = row.pm(n, Ys) * fabsl(row.D()) + row.pe(n, Ys) * row.ED +
                          row.gs[n] * expl(Ys) * (fabsl(row.D()) + row.ED) +
                          expl(sum.G + casts) * eta;
  }
  for (std::size_t j = 0; j < N; ++j) {
    const Real Gv = of_key[j].G + hat(c.inputs.load_u_do), Ak = of_key[j].G + after;
    if (of_key[j].N == 0 && of_key[j].G == 0) continue;  // no row sees it
    for (Real& x : result.dk[j]) x += s1 * expl(Ak) * (of_key[j].N + b.grad_eta * k_most[j]);
    for (Real& x : result.dv[j]) x += expl(Gv) * (of_key[j].N + b.grad_eta * v_most[j]);
  }
  return result;
}

}  // namespace ringproof::test
