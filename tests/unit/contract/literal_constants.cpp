// Sections 2 and 3 of docs/contract.md read literally (literal.hpp): accumulators and the
// constants of every key.
#include <algorithm>
#include <cmath>

#include "tests/unit/contract/literal_row.hpp"

namespace ringproof::test::literal {

Real hat(Real u) { return -log1pl(-u); }  // contract.md (1)
Real ceil_div(Real a, Real b) { return ceill(a / b); }

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
      const Real nsk = c.score.sink_roundings;
      k.eps = expm1l(nsk * us) * fabsl(k.s) + expl(nsk * us) * nsk * c.score.eta;
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
      const Real eta = c.score.eta;
      const Real of_stores = c.score.softcap.store.size() * static_cast<Real>(c.score.store_eta);
      const Real e = k.eps + expm1l(nc * us + cs) * (fabsl(k.dot) + k.eps) +
                     expl(nc * us + cs) * cap * (nc * eta + of_stores);
      const Real t = hat(c.score.softcap.tanh_rel) + us + 2 * cs;
      const Real lost = c.score.softcap.tanh_abs + expl(cs) * of_stores;
      k.eps =
          expl(t) * (e + cap * lost) + expm1l(t) * fabsl(k.capped) + expl(cs) * (eta + of_stores);
    }
    const bool b = !row.bias.empty(), a = !row.alibi.empty();
    if (b || a) {  // (6)
      const Real tb = us + sum_hat(c.score.bias_store);
      const Real nb = c.score.bias_roundings, eta = c.score.eta;
      const Real added = (k.bias != 0 ? 1 : 0) + (k.alibi != 0 ? 1 : 0);
      const Real et = c.score.bias_store.size() * expl(tb) * static_cast<Real>(c.score.store_eta) +
                      (added > 0 ? expl(tb) * eta : 0);
      k.eps +=
          expm1l(nb * us) * (fabsl(k.bias) + fabsl(k.alibi)) + expl(nb * us) * nb * added * eta;
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

void Literal::blocks() {  // n_al, n_rs
  const Real sink = row.has_sink ? 1 : 0;
  const bool approx = !c.softmax.exp_zero_exact;
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
}

void Literal::key_constants(Real na, bool scaled) {
  const bool fma = c.softmax.arg == ExpArgument::fma_scaled;
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
    // (9)
    const bool one_block = T == 1 && R == 1;
    k.mu = !fma || scaled ? 0 : one_block ? expm1l(na * us) * us * mup : k.muL;
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
    if (!power && c.p.sum_from_cast) k.B += 2 * std::max({us, hat(c.pv.u), hat(c.finish.u)});
    k.z = 0;
    k.Al = k.A;
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
  int e = 0;
  const bool whole_sum = !c.p.sum_from_cast || frexp(c.p.scale, &e) == 0.5;
  ones = equal && !approx && !row.has_sink && tau == 0 && whole_sum &&
         !(c.softmax.arg == ExpArgument::fma_scaled && M != 0) && n < 0x1p24L &&
         (R == 1 || (c.partials.merge == std::vector{Merge::unnormalized} && c.partials.o_u == 0 &&
                     c.partials.run_u == 0));
  ex = ones ? 0 : hat(c.softmax.exp_rel);
  blocks();
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
  key_constants(na, scaled);
  const bool lse_merge = merge != Merge::none && merge != Merge::unnormalized;
  tau_d = normalized || lse_merge ? 0 : nd;  // (15)
  lmax_rest = logl(n) + tau + std::max(Mp - M, M - Mm) + tc * std::max(fabsl(Mp), fabsl(Mm));
}

}  // namespace ringproof::test::literal
