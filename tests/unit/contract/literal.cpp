// The literal reading of docs/contract.md (literal.hpp). Letters are those of the document.
#include "tests/unit/contract/literal.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ringproof::test {

using namespace ringproof::oracle;

namespace {

using Real = long double;
using List = std::vector<Real>;

Real hat(Real u) { return -log1pl(-u); }  // (1)
Real ceil_div(Real a, Real b) { return ceill(a / b); }

struct Runs {
  Real n, C;
  List r;
  bool at_zero;
  Real dealt;  // R if a run may be dealt out to R ranks, else 0
};

Real S(const Runs& x, Real b) {
  Real sum = x.C;
  for (std::size_t k = 0; k < x.r.size(); ++k) {
    const Real r = x.r[k];
    if (x.dealt > 1) {
      sum += std::min(r, 2 * x.dealt + ceil_div(r, b));
    } else if (k == 0 && x.at_zero) {
      sum += ceil_div(r, b);
    } else {
      sum += 1 + ceil_div(r - 1, b);
    }
  }
  return std::min(x.n, sum);
}

Real Gamma(const Accumulator& a, const Runs& x) {
  const Real n = std::max<Real>(1, x.n), p = a.products_rounded ? 1 : 0;
  switch (a.model) {
    case Accumulator::Model::any_order:
      return (n - 1 + p) * hat(a.u);
    case Accumulator::Model::tree: {
      const Real b = a.leaf;
      return (std::min(n, b) - 1 + ceill(log2l(ceil_div(n, b))) + p) * hat(a.u);
    }
    case Accumulator::Model::blocked: {  // (2)
      const Real b = a.block;
      const bool dot = x.r.size() == 1 && x.at_zero && x.C == 0;
      const Runs inside{std::min(n, b), 0, {dot ? std::min(n, b) : b}, true, 0};
      return Gamma(a.of[0], inside) + S(x, b) * hat(a.u);
    }
    case Accumulator::Model::mma: {  // (3)
      const Real rho =
          0x1p-23L + (a.b + (a.neab < 0 ? 1 : 0)) * ldexpl(1, static_cast<int>(-23 - a.neab));
      return S(x, a.b) * hat(rho);
    }
    case Accumulator::Model::max:
      break;
  }
  Real g = 0;
  for (const auto& of : a.of) g = std::max(g, Gamma(of, x));
  return g;
}

Real sum_hat(const std::vector<double>& us) {
  Real sum = 0;
  for (const double u : us) sum += hat(u);
  return sum;
}

struct Key {
  Real s, a, dot, capped, bias, alibi, eps, p, Del, x, mu, muL, C, CL, A, B, cast, z, Al;
  bool sink;
  std::int64_t place;  // in the key range
};

struct Literal {
  const Contract& c;
  const Problem& problem;
  const RowTruth& row;
  const double* values;
  std::int64_t stride;
  Literal(const Contract& contract, const Problem& of, const RowTruth& truth, const double* v,
          std::int64_t v_stride)
      : c(contract), problem(of), row(truth), values(v), stride(v_stride) {}

  std::vector<Key> keys;
  Runs runs, part;
  Real us, R, T, Tp, n, M, Mp, Mm, L, W, tc, fc, tau, ex, nd, Gpv, Gl;
  Real nal = 0, nrs = 0, tau_d = 0, kappa = 0, G_v = 0, G_1 = 0, H = 0, G2_v = 0, G2_1 = 0, Pt = 0;
  Real leak = 0, leak_growth = 0, lmax_rest = 0;
  bool temperature, ones = false;
  Merge merge = Merge::none;
  LiteralBound result;

  Real v(const Key& k, std::size_t column) const {
    return k.sink ? 0
                  : static_cast<Real>(values[k.place * stride + static_cast<std::int64_t>(column)]);
  }
  Real total(const std::function<Real(const Key&)>& f) const {
    Real sum = 0;
    for (const Key& k : keys) sum += f(k);
    return sum;
  }
  Real maximum(const std::function<Real(const Key&)>& f) const {
    Real m = -HUGE_VALL;
    for (const Key& k : keys) m = std::max(m, f(k));
    return m;
  }

  void collect();
  void scores();
  void layout();
  void common_constants();
  void merge_constants();
  void absolute_terms();
  Real tail(Real m, Real lmax, Real LL, Real uL) const;
  void lse();
  Real G2(std::size_t column) const;
  Real T1(std::size_t column) const;
  Real T1R(std::size_t column) const;
  Real T1F() const;
  Real T0(std::size_t column, Real e) const;
  void run();
};

void Literal::collect() {
  for (std::int64_t j = 0; j < row.keys.size(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    if (row.score[i] == -INFINITY) continue;
    Key k{};
    k.place = j;
    k.dot = row.dot[i];
    k.a = row.abs_dot[i];
    k.capped = row.capped.empty() ? k.dot : row.capped[i];
    k.bias = row.bias.empty() ? 0 : row.bias[i];
    k.alibi = row.alibi.empty() ? 0 : row.alibi[i];
    k.s = row.score[i];
    keys.push_back(k);
  }
  if (row.has_sink) {
    Key k{};
    k.sink = true;
    k.s = row.sink;
    k.place = -1;
    keys.push_back(k);
  }
  n = keys.size();
  R = c.partials.count;
  us = hat(c.softmax.u);
  nd = c.finish.roundings * hat(c.finish.u);
  M = maximum([](const Key& k) { return k.s; });
  W = total([&](const Key& k) { return expl(k.s - M); });
  L = M + logl(W);
  for (Key& k : keys) k.p = expl(k.s - L);
}

void Literal::scores() {
  temperature = row.capped.empty() && row.bias.empty() && row.alibi.empty();
  const Real d = problem.head_dim;
  const Real scale =
      problem.spec.scale ? fabsl(static_cast<Real>(*problem.spec.scale)) : 1 / sqrtl(d);
  const Real Sig = c.score.scale_roundings * us + sum_hat(c.score.store);
  const Runs dot{d, 0, {d}, true, 0};
  const Real Gqk = Gamma(c.score.acc, dot);
  for (Key& k : keys) {
    if (k.sink) {
      k.eps = expm1l(c.score.sink_roundings * us) * fabsl(k.s);
      continue;
    }
    // (4)
    k.eps = 0;
    if (k.a != 0) {
      k.eps = expl(Sig) *
                  (expm1l(Gqk + 2 * hat(c.inputs.load_u)) * k.a +
                   (2 * d * scale + c.score.scale_roundings + 1) * static_cast<Real>(c.score.eta) +
                   c.score.store.size() * static_cast<Real>(c.score.store_eta)) +
              expm1l(Sig) * fabsl(k.dot);
      if (!temperature) {
        const Real uc = hat(c.score.scale_const_u);
        k.eps = k.eps * expl(uc) + expm1l(uc) * fabsl(k.dot);
      }
    }
    if (!row.capped.empty()) {  // (5)
      const Real cap = problem.spec.softcap, cs = sum_hat(c.score.softcap.store);
      const Real nc = c.score.softcap.roundings;
      const Real e =
          k.eps + expm1l(nc * us + cs) * (fabsl(k.dot) + k.eps) + expl(cs) * nc * c.score.eta;
      const Real t = hat(c.score.softcap.tanh_rel) + us + cs;
      k.eps = expl(t) * (e + cap * c.score.softcap.tanh_abs) + expm1l(t) * fabsl(k.capped);
    }
    const bool b = !row.bias.empty(), a = !row.alibi.empty();
    if (b || a) {  // (6)
      const Real tb = us + sum_hat(c.score.bias_store);
      const Real et = c.score.bias_store.size() * expl(tb) * static_cast<Real>(c.score.store_eta);
      k.eps += expm1l(c.score.bias_roundings * us) * (fabsl(k.bias) + fabsl(k.alibi));
      if (b && a) {
        const Real inner = std::max(
            {fabsl(k.capped + k.bias), fabsl(k.capped + k.alibi), fabsl(k.bias + k.alibi)});
        k.eps += expm1l(tb) * (inner + k.eps) + et;
      }
      k.eps += expm1l(tb) * (fabsl(k.s) + k.eps) + et;
    }
    if (k.a != 0 || a) k.eps += row.score_radius + 0x1p-53L * fabsl(k.s);  // radius of the truth
  }
}

void Literal::layout() {
  const auto& m = c.partials.merge;
  const auto has = [&](Merge f) { return std::find(m.begin(), m.end(), f) != m.end(); };
  const bool ring = R > 1 && (problem.spec.ring || c.backward.ring.count > 1 ||
                              has(Merge::lse_sequential) || has(Merge::lse_sigmoid));
  runs = {};
  runs.n = row.visible;
  runs.C = R > 1 ? 2 * R - 1 : 0;
  const bool known = problem.spec.ring && problem.spec.ring->layout != RingLayout::striped;
  runs.dealt = ring && !known ? R : 0;
  std::int64_t last = -2;
  for (const Key& k : keys) {
    if (k.sink) continue;
    if (k.place == last + 1) {
      runs.r.back() += 1;
    } else {
      if (runs.r.empty()) runs.at_zero = row.keys.first + k.place == 0;
      runs.r.push_back(1);
    }
    last = k.place;
  }
  part = runs;
  if (c.partials.max_keys > 0) {
    part.n = std::min<Real>(runs.n, c.partials.max_keys);
    if (runs.r.size() == 1) part.r = {part.n};
  }
}

void Literal::common_constants() {
  const Real sink = row.has_sink ? 1 : 0, block = c.softmax.block;
  const bool normalized = c.p.normalized == Tri::yes;
  const bool approx = !c.softmax.exp_zero_exact;
  Mp = maximum([](const Key& k) { return k.s + k.eps; });
  Mm = maximum([](const Key& k) { return k.s - k.eps; });
  tc = temperature ? expm1l(hat(c.score.scale_const_u)) : 0;
  fc = 1 + tc;
  tau = c.softmax.lazy ? c.softmax.lazy_log2 * logl(2) : 0;
  T = normalized ? 1
      : approx   ? ceil_div(problem.keys, block) + runs.C + sink
                 : std::min(runs.n, S(runs, block)) + sink;
  Tp = T;
  if (c.partials.max_keys > 0 && !normalized) {
    const Real keys_of_part = std::min<Real>(problem.keys, c.partials.max_keys);
    Tp =
        std::min(T, approx ? ceil_div(keys_of_part, block) + runs.C + sink : S(part, block) + sink);
  }
  const bool equal =
      maximum([&](const Key& k) { return k.s == M && k.eps == 0 ? 0.0L : 1.0L; }) == 0;
  ones = equal && !approx && !row.has_sink && tau == 0 &&
         !(c.softmax.arg == ExpArgument::fma_scaled && M != 0) && n < 0x1p24L &&
         (R == 1 || (c.partials.merge == std::vector{Merge::unnormalized} && c.partials.o_u == 0 &&
                     c.partials.run_u == 0));
  ex = ones ? 0 : hat(c.softmax.exp_rel);
  nrs = Tp - 1;
  nal = Tp - 1;
  if (c.softmax.order != BlockOrder::any && !approx && R == 1) {
    Real before = -HUGE_VALL, changes = sink;
    std::vector<const Key*> order;
    for (const Key& k : keys) {
      if (!k.sink) order.push_back(&k);
    }
    if (c.softmax.order == BlockOrder::descending) std::reverse(order.begin(), order.end());
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k > 0 && order[k]->s + order[k]->eps > before) changes += 1;
      before = std::max(before, order[k]->s - order[k]->eps);
    }
    nal = std::min(nal, changes);
    nrs = std::min(nrs, changes);
  }
  if (merge == Merge::unnormalized) nal += R - 1;
  Runs with_sink = part;  // the sink is one more term of l, and a run of its own
  if (row.has_sink) {
    with_sink.n += 1;
    with_sink.C += 1;
  }
  Gpv = Gamma(c.pv.acc, part);
  Gl = Gamma(c.l.acc, with_sink);
  const bool fma = c.softmax.arg == ExpArgument::fma_scaled;
  const bool scaled = fma && c.softmax.alpha_from == AlphaFrom::scaled_max;
  const Real na = c.softmax.arg == ExpArgument::sub        ? 1
                  : c.softmax.arg == ExpArgument::sub_log2 ? 3
                  : scaled                                 ? 1
                                                           : 2;
  const auto distance = [&](const Key& k) {
    const Real f = (k.s - M) / logl(2);
    return fabsl(f - roundl(f)) * logl(2);
  };
  const Real max_d = maximum(distance), max_eps = maximum([](const Key&k) { return k.eps; });
  int e = 0;
  const bool power = frexp(c.p.scale, &e) == 0.5;
  for (Key& k : keys) {
    k.Del = fc * (Mp - k.s + k.eps) + 2 * tau;  // (7)
    if (row.has_sink) k.Del += tc * std::max(fabsl(Mp), fabsl(k.s) + k.eps);
    const Real mup = fc * std::max(fabsl(Mp), fabsl(k.s) + k.eps + tau);
    k.x = expm1l(na * us) * k.Del;  // (8)
    if (scaled) k.x += expm1l(us) * 2 * (T + R) * c.softmax.u * expl(c.softmax.u) * mup;
    k.muL = fma ? expl(na * us) * us * mup : 0;
    k.mu = fma && !scaled && !(T == 1 && R == 1) ? k.muL : 0;  // (9)
    const Real shift = k.sink ? std::max(fabsl(M), fabsl(k.s - M)) : fabsl(k.s - M);
    k.C = k.eps + k.x + k.mu + (1 + nal) * ex + tc * (shift + k.eps);  // (10)
    k.CL = k.eps + k.x + k.muL + (1 + nal) * ex +
           tc * (std::max(fabsl(k.s), fabsl(k.s - M)) + k.eps);  // (11)
    k.cast = hat(c.p.u);
    if (c.p.round == RoundMode::rn && c.p.normalized == Tri::no && c.p.u > 0 && power) {  // (12)
      const Real y1 = k.Del + k.x + k.mu + ex;
      const Real y2 = distance(k) + max_d + k.eps + max_eps + tc * k.Del + k.x + k.mu + ex;
      const Real y = tau == 0 ? std::min(y1, y2) : y2;
      if (expm1l(y) < 1) k.cast = std::min(k.cast, -log1pl(-expm1l(y)));
    }
    if (c.p.sum_from_cast) {
      k.C += k.cast;
      k.CL += k.cast;
      k.cast = 0;
    }
    k.A = k.cast + hat(c.inputs.load_u_v) + Gpv + nrs * hat(c.pv.u);  // (13)
    if (c.p.normalized != Tri::no) k.A += nd;
    if (!power) k.A += 2 * std::max({us, hat(c.pv.u), hat(c.finish.u)});
    k.B = ones ? 0 : Gl + nrs * hat(c.l.u);  // (14)
    k.z = 0;
    k.Al = k.A;
  }
  const bool lse_merge = merge != Merge::none && merge != Merge::unnormalized;
  tau_d = normalized || lse_merge ? 0 : nd;  // (15)
  lmax_rest = logl(n) + tau + std::max(Mp - M, M - Mm) + tc * std::max(fabsl(Mp), fabsl(Mm));
}

Real Literal::tail(Real m, Real lmax, Real LL, Real uL) const {  // (24)
  const Real th = us + hat(uL);
  return expl(th) * (expm1l(c.lse.max_roundings * us) * m +
                     expm1l(hat(c.lse.log_rel) + 2 * us) * lmax + expl(2 * us) * c.lse.log_abs) +
         expm1l(th) * LL;
}

void Literal::merge_constants() {
  const Real up_o = hat(c.partials.o_u), up_run = hat(c.partials.run_u), uL = c.partials.lse_u;
  if (merge == Merge::unnormalized) {  // (17)
    for (Key& k : keys) {
      k.A += (R - 1) * (2 * hat(c.pv.u) + up_run) + up_o;
      k.B += 2 * (R - 1) * hat(c.l.u);
    }
  }
  if (merge == Merge::none || merge == Merge::unnormalized) return;
  const Real up = log1pl(total([](const Key& k) { return k.p * expm1l(k.CL + k.B); }));
  const Real lmax = lmax_rest + maximum([](const Key& k) { return k.CL + k.B; });
  const Real kL = expm1l(us + hat(uL));
  if (merge == Merge::lse_sigmoid) {
    const Real La =
        std::max(fabsl(L), maximum([](const Key& k) { return fabsl(k.s) + k.CL + k.B; })) + up;
    const Real Z = tail(La, lmax, La, uL);
    const Real least = -maximum([](const Key& k) { return -(k.s - k.CL - k.B); });
    const Real X0 = std::max(0.0L, L + up - least) + 2 * Z;
    const Real lg = expm1l(hat(c.lse.log_rel) + 2 * us);
    const Real kx = expm1l(us) + 1.01L * lg;
    const Real dl = 1.01L * (0.6932L * lg + 0.5L * ex + c.lse.log_abs);
    const Real h = (dl + kL * (La + Z) + kx * X0) / (1 - (R - 1) * (kL + 2 * kx));
    const Real X = X0 + 2 * (R - 1) * h;
    for (Key& k : keys) {  // (20a)
      k.z = Z + expm1l(us) * X + (R - 1) * h;
      k.C += k.z;
      k.CL += k.z;
      k.A += nd + up_o + (R - 1) * (us + up_run);
    }
    const Real sg = hat(c.partials.sigmoid_rel) + 2 * us;
    leak = expm1l(sg) * expl((R - 1) * (us + up_run)) + R * c.softmax.exp_eta;
    leak_growth = maximum([](const Key& k) { return k.A; }) +
                  maximum([](const Key& k) { return k.B; }) + (R - 1) * 2 * sg;
    return;
  }
  const bool seq = merge == Merge::lse_sequential;
  const Real nm = seq ? R - 1 : 1;
  const Real dl = 1.01L * (0.28L * us + 0.5L * ex + 0.6932L * hat(c.lse.log_rel) + c.lse.log_abs);
  for (Key& k : keys) {  // (18)
    const Real La = std::max(fabsl(L), fabsl(k.s)) + k.CL + k.B + up;
    k.z = tail(La, lmax, La, uL);
    const Real Lam = (La + k.z + nm * dl) / (1 - nm * kL);
    const Real span = L - k.s + 2 * (k.CL + k.B + up + k.z + nm * (dl + kL * Lam));
    k.C += k.z;
    k.CL += k.z;
    if (seq) {  // (19)
      k.A += nd + up_o + (R - 1) * (ex + 2 * us + up_run) + expm1l(us) * span;
      k.B += (R - 1) * (dl + kL * Lam);
    } else {  // (20)
      k.A += nd + up_o + ex + R * us + expm1l(us) * span;
      k.B += ex + (R - 1) * us + expm1l(us) * span +
             1.01L * (hat(c.lse.log_rel) * logl(R) + c.lse.log_abs) + expm1l(us) * Lam;
    }
  }
}

void Literal::absolute_terms() {  // (16), (16a)
  const bool yes = c.p.normalized == Tri::yes, any = c.p.normalized != Tri::no;
  kappa =
      expl(nal * ex + maximum([&](const Key& k) { return k.s + k.eps - M + k.A - k.cast + k.z; }));
  const Real eta_o = c.pv.eta, eta_e = c.softmax.exp_eta;
  G_v = kappa * ((yes ? 0 : c.p.eta / static_cast<Real>(c.p.scale)) + (T + R) * eta_e);
  G_1 = yes ? 0 : kappa * (2 * n + T + 2 * R) * eta_o;
  H = kappa * ((T + R) * n * eta_e + (n + T + 2 * R) * c.l.eta);
  G2_v = any ? expl(Gpv) * c.p.eta : 0;
  G2_1 = c.finish.roundings * eta_o + (any ? expl(Gpv) * 2 * n * eta_o : 0);
  Pt = R > 1 ? (2 * R - 1) * (c.partials.eta + 2 * eta_o) * expl(maximum([&](const Key& k) {
                 return std::min(0.0L, k.s + logl(n) - L) + k.A - k.cast + k.B + k.CL;
               }))
             : 0;
}

void Literal::lse() {  // (25)
  // sum p = 1, so that ln(sum p e^x) is ln(1 + sum p (e^x - 1)), which keeps the digits of a small sum.
  const Real above = total([](const Key& k) { return k.p * expm1l(k.CL + k.B); });
  const Real below = -total([](const Key& k) { return k.p * expm1l(-k.CL - k.B); });
  const Real r =
      below + H / W < 1 ? std::max(log1pl(above + H / W), -log1pl(-below - H / W)) : HUGE_VALL;
  Real lam = r;
  if (merge == Merge::lse_once) lam = r + expm1l(hat(c.partials.lse_u)) * (fabsl(L) + r);
  if (merge == Merge::none || merge == Merge::unnormalized) {
    const Real lmax = lmax_rest + std::max(log1pl(above), -log1pl(-below));
    lam = r + tail(fc * std::max(fabsl(Mp), fabsl(Mm)) + tau, lmax, fabsl(L) + r, c.lse.u);
  }
  result.lse = std::max(result.lse, lam);
}

Real Literal::G2(std::size_t column) const {
  Real abs = 0, lo = HUGE_VALL, hi = -HUGE_VALL, largest = 0;
  for (const Key& k : keys) {
    const Real x = v(k, column);
    abs += fabsl(x);
    lo = std::min(lo, x);
    hi = std::max(hi, x);
    largest = std::max(largest, fabsl(x));
  }
  return G2_v * abs + G2_1 + leak * (hi - lo + 2 * expm1l(leak_growth) * largest);  // (20b)
}

Real Literal::T1(std::size_t column) const {
  const Real o = total([&](const Key& k) { return k.p * v(k, column); });
  const Real abs = total([&](const Key& k) { return fabsl(v(k, column)); });
  const Real G = G_v * abs + G_1;
  const Real D = total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H / W;
  if (!(D > 0)) return HUGE_VALL;
  const Real e0 =
      (total([&](const Key& k) { return k.p * expm1l(k.C) * fabsl(v(k, column) - o); }) +
       total([&](const Key& k) {
         return k.p * expl(k.C) * (expm1l(k.A) * fabsl(v(k, column)) + expm1l(k.B) * fabsl(o));
       }) +
       (G + H * fabsl(o)) / W + Pt) /
      D;  // (21)
  const Real vmax = maximum([&](const Key& k) { return fabsl(v(k, column)); });
  const Real maxA = maximum([](const Key&k) { return k.A; }),
             maxB = maximum([](const Key&k) { return k.B; });
  const Real e1 = maximum([&](const Key& k) { return fabsl(v(k, column) - o); }) +
                  expl(maxB) * (1 + H / (W * D)) * (expm1l(maxA) + expm1l(maxB)) * vmax +
                  ((G + H * vmax) / W + Pt) / D;  // (22)
  const Real e = expl(tau_d) * std::min(e0, e1) + expm1l(tau_d) * fabsl(o) + G2(column);
  return std::min(e, T1R(column));
}

Real Literal::T1R(std::size_t column) const {  // (23)
  const bool seq = merge == Merge::lse_sequential;
  if (!problem.spec.ring || row.has_sink || (!seq && merge != Merge::unnormalized))
    return HUGE_VALL;
  const auto ranks = static_cast<std::int64_t>(R);
  const auto owner = [&](std::int64_t position) {
    // Straight from the definition of the layouts: search the rank whose chunks hold the position.
    const std::int64_t N = problem.keys;
    const auto chunk_begin = [&](std::int64_t chunk, std::int64_t chunks) {
      return chunk * N / chunks;
    };
    if (problem.spec.ring->layout == RingLayout::striped) return position % ranks;
    const bool zigzag = problem.spec.ring->layout == RingLayout::zigzag;
    const std::int64_t chunks = zigzag ? 2 * ranks : ranks;
    std::int64_t chunk = 0;
    while (chunk_begin(chunk + 1, chunks) <= position) ++chunk;
    return zigzag && chunk >= ranks ? 2 * ranks - 1 - chunk : chunk;
  };
  const std::int64_t mine = owner(problem.position_q[static_cast<std::size_t>(row.i)]);
  const Real o = total([&](const Key& k) { return k.p * v(k, column); });
  const Real D = total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H / W;
  const Real slack = 2 * maximum([](const Key& k) { return k.CL + k.B; });
  const Real s = (seq ? nd : 0) + hat(c.partials.o_u),
             de = (seq ? us : hat(c.pv.u)) + hat(c.partials.run_u);
  Real E = 0, X = 0, kt = 0, Wt = 0;
  for (std::int64_t t = 0; t < ranks; ++t) {
    const bool down = problem.spec.ring->order == RingOrder::down;
    const std::int64_t shard = ((down ? mine - t : mine + t) % ranks + ranks) % ranks;
    Real N = 0, w = 0, cr = 0, lr = 0;
    bool empty = true;
    for (const Key& k : keys) {
      if (owner(problem.position_k[static_cast<std::size_t>(row.keys.first + k.place)]) != shard)
        continue;
      empty = false;
      N += k.p * v(k, column);
      w += k.p;
      cr += k.p * expm1l(k.C) * fabsl(v(k, column));
      lr += k.p * expl(k.C) * expm1l(k.Al) * fabsl(v(k, column));
    }
    if (empty) continue;
    const Real Eh = expl(s) * lr + expm1l(s) * (fabsl(N) + cr);
    if (Wt == 0) {
      E = Eh;
    } else {
      const Real base = seq ? ex + us : hat(c.pv.u), ratio = seq ? expm1l(us) : 0;
      const Real al1 = base + ratio * (logl((Wt + w) / Wt) + slack);
      const Real al2 = base + ratio * (logl((Wt + w) / w) + slack);
      E = expl(de) * (expl(al1) * E + expm1l(al1) * (fabsl(X) + kt) + expl(al2) * Eh +
                      expm1l(al2) * (fabsl(N) + cr)) +
          expm1l(de) * (fabsl(X + N) + kt + cr);
    }
    X += N;
    kt += cr;
    Wt += w;
  }
  const Real abs = total([&](const Key& k) { return fabsl(v(k, column)); });
  const Real e0 =
      (total([&](const Key& k) { return k.p * expm1l(k.C) * fabsl(v(k, column) - o); }) + E +
       fabsl(o) * total([](const Key& k) { return k.p * expl(k.C) * expm1l(k.B); }) +
       (G_v * abs + G_1 + H * fabsl(o)) / W + Pt) /
      D;
  return expl(tau_d) * e0 + expm1l(tau_d) * fabsl(o) + G2(column);
}

Real Literal::T1F() const {  // (26)
  const std::size_t columns = row.out.size();
  const Format& format = format_of(c.out.dtype);
  const bool rn = c.out.round == RoundMode::rn;
  const Real u_out = (rn ? 1 : 2) * format.unit();
  Real eta_out = std::max(format.smallest() / (rn ? 2 : 1), 0x1p-1074);
  if (c.out.ftz) eta_out = ldexpl(1, format.min_exponent);
  List g(columns), o(columns);
  Real y = 0, S1 = 0, sum_g = 0, sum_G2 = 0;
  for (std::size_t t = 0; t < columns; ++t) {
    o[t] = total([&](const Key& k) { return k.p * v(k, t); });
    g[t] = row.out[t].hi < 0 ? -1 : 1;
    y += g[t] * o[t];
    S1 += fabsl(o[t]);
    sum_g += fabsl(g[t]);
    sum_G2 += fabsl(g[t]) * G2(t);
  }
  const auto yj = [&](const Key& k) {
    Real sum = 0;
    for (std::size_t t = 0; t < columns; ++t) sum += g[t] * v(k, t);
    return sum;
  };
  const auto ay = [&](const Key& k) {
    Real sum = 0;
    for (std::size_t t = 0; t < columns; ++t) sum += fabsl(g[t] * v(k, t));
    return sum;
  };
  const Real D = total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H / W;
  if (!(D > 0)) return HUGE_VALL;
  const Real first = total([&](const Key& k) {
    return k.p * (expm1l(k.C) * fabsl(yj(k) - y) +
                  expl(k.C) * (expm1l(k.cast) * fabsl(yj(k)) + expm1l(k.B) * fabsl(y) +
                               expl(k.cast) * expm1l(k.A - k.cast) * ay(k)));
  });
  const Real S_O = S1 + total([&](const Key& k) {
                          return k.p * (expm1l(k.C) * (ay(k) + S1) +
                                        expl(k.C) * (expm1l(k.A) * ay(k) + expm1l(k.B) * S1));
                        }) / D;
  const Real sum_ay = total(ay);
  const Real U =
      (G_v * sum_ay + H * fabsl(y)) / (W * D) + sum_g * (eta_out + G_1 / (W * D) + Pt / D) + sum_G2;
  return first / D + expm1l(tau_d + hat(u_out)) * S_O + U;
}

Real Literal::T0(std::size_t column, Real e) const {  // (26a)
  int exponent = 0;
  if (!ones || c.p.normalized != Tri::no || frexp(c.p.scale, &exponent) != 0.5 ||
      c.inputs.load_u_v != 0) {
    return e;
  }
  Real sum = 0, abs = 0, grid = HUGE_VALL;
  for (const Key& k : keys) {
    const Real x = v(k, column);
    sum += x;
    abs += fabsl(x);
    Real step = 0x1p-1074L;
    while (x != 0 && fmodl(x, 2 * step) == 0) step *= 2;
    if (x != 0) grid = std::min(grid, step);
  }
  if (sum == 0 && abs == 0) return 0;
  if (!(abs < 0x1p24L * grid) || grid < 2 * static_cast<Real>(c.pv.eta)) return e;
  const Real o = total([&](const Key& k) { return k.p * v(k, column); });
  return sum == 0 ? 0
                  : std::min(e, expm1l(nd) * fabsl(o) +
                                    c.finish.roundings * static_cast<Real>(c.pv.eta));
}

void Literal::run() {
  collect();
  scores();
  layout();
  result.out.assign(row.out.size(), 0);
  for (const Merge form : c.partials.merge) {
    merge = R > 1 ? form : Merge::none;
    leak = leak_growth = 0;
    common_constants();
    merge_constants();
    absolute_terms();
    lse();
    for (std::size_t t = 0; t < row.out.size(); ++t) result.out[t] = std::max(result.out[t], T1(t));
    result.functional = std::max(result.functional, T1F());
    result.largest_budget = std::max(result.largest_budget, maximum([](const Key& k) {
                                       return std::max({k.C, k.CL + k.B, k.A});
                                     }));
    if (R == 1) break;
  }
  const Format& format = format_of(c.out.dtype);
  const Real u_out = (c.out.round == RoundMode::rn ? 1 : 2) * format.unit();
  Real of_elements = 0;  // the sum of the element bounds bounds the functional as well
  for (std::size_t t = 0; t < row.out.size(); ++t) {
    result.out[t] = T0(t, result.out[t]);
    of_elements += result.out[t] + u_out * (fabsl(row.out[t].hi) + result.out[t]);
  }
  Real eta_out = std::max(format.smallest() / (c.out.round == RoundMode::rn ? 2 : 1), 0x1p-1074);
  if (c.out.ftz) eta_out = ldexpl(1, format.min_exponent);
  of_elements += static_cast<Real>(row.out.size()) * eta_out;
  result.functional = std::min(result.functional, of_elements);
}

}  // namespace

LiteralBound literal_bound(const Contract& contract, const Problem& problem, const RowTruth& row,
                           const double* values, std::int64_t stride) {
  Literal literal(contract, problem, row, values, stride);
  literal.run();
  return literal.result;
}

}  // namespace ringproof::test
