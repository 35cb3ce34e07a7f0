// One row of T2 read literally (literal_backward.hpp): (27)-(29) under the letters of the page.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/contract/gradient_fixture.hpp"
#include "tests/unit/contract/literal_row.hpp"

namespace ringproof::test::literal {

class GradientRow {
 public:
  GradientRow(const Contract& contract, const GradientFixture& fixture, std::int64_t row)
      : c(contract),
        f(fixture),
        t(fixture.truth[static_cast<std::size_t>(row)]),
        g(fixture.gradients[static_cast<std::size_t>(row)]),
        forward(contract, fixture.problem, t, fixture.v.data(), fixture.problem.value_dim) {}

  /// Everything but the sums: probabilities in use, EP and ED.
  void prepare() {
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
      C_of_cast.clear();  // a weight is cast before it is merged
      for (const Key& k : forward.keys) C_of_cast.push_back(k.C);
      forward.merge_constants();
      forward.absolute_terms();
      forward.lse();
      Lam = std::max(Lam, forward.result.lse);
      if (stored) use_stored(p_dp);
      if (out) ED = std::max(ED, D_from_out());
      if (out) F = std::max(F, delta_norm());
      lists_delta = out;
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
  Real F = 0;  // of (41)
  bool isolated, lists_delta = false;
  List X, XV, gs, gv, EP, C_of_cast;

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

  /// F of (41), behind D_from_out(). Keys are of one class if a chain of pairs is near.
  Real delta_norm() const {
    if (t.visible == 0) return 0;  // an output of zeros has no rounding
    const Literal& w = forward;
    const Real H = w.H / w.W;
    const Real Den = w.total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H;
    const Real A = w.maximum([](const Key& k) { return k.A; });
    std::vector<std::size_t> root(w.keys.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    for (std::size_t a = 0; a < root.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Real octaves = (w.keys[a].s - w.keys[b].s) / logl(2);
        if (fabsl(octaves - roundl(octaves)) > 2 * (C_of_cast[a] + C_of_cast[b])) continue;
        const std::size_t from = root[a], to = root[b];
        std::replace(root.begin(), root.end(), from, to);
      }
    }
    Real casts = 0;
    for (std::size_t one = 0; one < root.size(); ++one) {
      Real sum = 0;
      for (std::size_t k = 0; k < root.size(); ++k) {
        const Key& key = w.keys[k];
        if (root[k] != one || key.sink) continue;
        sum += key.p * expl(key.C) * expm1l(key.cast) * (fabsl(dp(k)) + expm1l(A) * ay(k));
      }
      casts += powl(sum * expl(w.tau_d) / Den, 2);
    }
    Real of_out = 0, of_upstream = 0;
    for (std::size_t k = 0; k < t.out.size(); ++k) {
      of_out += powl(g.dout[k] * t.out[k].hi, 2);
      of_upstream += powl(g.dout[k], 2);
    }
    const Format& format = format_of(c.out.dtype);
    const Real u_out = (c.out.round == RoundMode::rn ? 1 : 2) * format.unit();
    const Real eta_out = format.smallest() / 2;
    const Real rounded = u_out * (sqrtl(of_out) + beyond_S1) + eta_out * sqrtl(of_upstream);
    return expl(GD() + us) * sqrtl(casts + rounded * rounded);
  }

  mutable Real beyond_S1 = 0;  // S_O - S1 of (27)

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
    beyond_S1 = S_O - S1;
    return first / Den + expm1l(w.tau_d + hat(u_out) + GD()) * S_O + of_values +
           H * fabsl(y) / Den + K + expl(hat(u_out) + GD()) * sum_G2 +
           sum_g * expl(GD()) * eta_out + lost_in_dot();
  }
};

}  // namespace ringproof::test::literal
