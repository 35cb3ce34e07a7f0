// Merging and the theorems of docs/contract.md read literally (literal.hpp).
#include <algorithm>
#include <cmath>

#include "tests/unit/contract/literal_row.hpp"

namespace ringproof::test::literal {

Real Literal::tail(Real m, Real lmax, Real LL, Real uL) const {  // (24)
  const Real th = us + hat(uL);
  return expl(th) * (expm1l(c.lse.max_roundings * us) * m +
                     expm1l(hat(c.lse.log_rel) + 2 * us) * lmax + expl(2 * us) * c.lse.log_abs) +
         expm1l(th) * LL;
}

/// eta_P / S_P if l may add up the cast P.
Real Literal::summed_eta() const {
  const bool cast = c.p.sum_from_cast && c.p.normalized != Tri::yes;
  return cast ? c.p.eta / static_cast<Real>(c.p.scale) : 0;
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
  const Real most = maximum([](const Key& k) { return k.CL + k.B; });
  const Real farthest = maximum([](const Key& k) { return fabsl(k.s) + k.eps; }) + tau;
  const Real fused =
      c.softmax.arg != ExpArgument::fma_scaled
          ? 0
          : expl((c.softmax.alpha_from == AlphaFrom::scaled_max ? 1 : 2) * us) * us * fc * farthest;
  const Real lost =
      ((T + R) * n * static_cast<Real>(c.softmax.exp_eta) + n * summed_eta() +
       (n + T + 2 * R) * static_cast<Real>(c.l.eta)) *
      expl(fused + (c.p.sum_from_cast ? hat(c.p.u) : 0) + 2 * ((1 + nal) * ex + keys.front().B));
  const Real log_lost = lost < 1 ? -log1pl(-lost) : HUGE_VALL;
  const Real lmax = lmax_rest + most + log_lost;
  const Real up = log1pl(total([](const Key& k) { return k.p * expm1l(k.CL + k.B); })) + log_lost;
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
  const bool fma = c.softmax.arg == ExpArgument::fma_scaled;
  const bool scaled = fma && c.softmax.alpha_from == AlphaFrom::scaled_max;
  Real shift = row.has_sink ? tc * fabsl(M) : 0;
  if (fma) shift += expl((scaled ? 1 : 2) * us) * us * fc * fabsl(Mp);
  kappa = expl(nal * ex + shift + maximum([&](const Key& k) {
                 const Real above = k.s + k.eps - M;
                 return above + tc * fabsl(above) + std::max(k.A - k.cast, k.B) + k.z;
               }));
  const Real eta_o = c.pv.eta, eta_e = c.softmax.exp_eta;
  G_v = kappa * ((yes ? 0 : c.p.eta / static_cast<Real>(c.p.scale)) + (T + R) * eta_e);
  G_1 = yes ? 0 : kappa * (2 * n + T + 2 * R) * eta_o;
  H = kappa * ((T + R) * n * eta_e + (n + T + 2 * R) * c.l.eta) + total([&](const Key& k) {
        const Real own = W * k.p * expl(std::max(k.C, k.CL) + k.B);
        const bool exact = ones && c.p.scale >= 2 * c.p.eta;
        if (exact) return 0.0L;
        const Real each = kappa * summed_eta();
        return c.p.round == RoundMode::faithful ? each : std::min(each, own);
      });
  G2_v = any ? expl(Gpv) * c.p.eta : 0;
  G2_1 = c.finish.roundings * eta_o + (any ? expl(Gpv) * 2 * n * eta_o : 0);
  Pt = R > 1 ? (2 * R - 1) * (c.partials.eta + 2 * eta_o) * expl(maximum([&](const Key& k) {
                 return std::min(0.0L, k.s + logl(n) - L) + k.A - k.cast + k.B + k.CL;
               }))
             : 0;
}

void Literal::lse() {  // (25)
  // sum p = 1, so that ln(sum p e^x) is ln(1 + sum p (e^x - 1)), which keeps the digits of a small
  // sum.
  const Real above = total([](const Key& k) { return k.p * expm1l(k.CL + k.B); });
  const Real below = -total([](const Key& k) { return k.p * expm1l(-k.CL - k.B); });
  const Real shrunk = total([](const Key& k) { return k.p * expl(-k.CL - k.B); }) - H / W;
  const Real fallen = below < 0.5L ? -log1pl(-below - H / W) : -logl(shrunk);
  const Real r = shrunk > 0 ? std::max(log1pl(above + H / W), fallen) : HUGE_VALL;
  Real lam = r;
  if (merge == Merge::lse_once) lam = r + expm1l(hat(c.partials.lse_u)) * (fabsl(L) + r);
  if (merge == Merge::none || merge == Merge::unnormalized) {
    lam = r + tail(fc * std::max(fabsl(Mp), fabsl(Mm)) + tau, lmax_rest + r, fabsl(L) + r, c.lse.u);
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
  Real lost = 0;  // (20c)
  if (merge == Merge::lse_once) {
    lost = R * c.softmax.exp_eta *
           expl(maximum([](const Key& k) { return k.cast; }) + hat(c.inputs.load_u_v) + Gpv +
                nrs * hat(c.pv.u) + Gl + nrs * hat(c.l.u) + nd + hat(c.partials.o_u) + R * us);
  }
  if (merge == Merge::lse_sequential) {
    Real heavy = 0, light = 0;
    for (const Key& k : keys) {
      if (k.s - L > -600) {
        heavy = std::max(heavy, k.A + k.B);
      } else {
        light = std::max(light, expl(k.s - L + k.A + k.B + k.C));
      }
    }
    lost = 2 * (R - 1) * (c.softmax.exp_eta * expl(2 * heavy) + n * light);
  }
  return G2_v * abs + G2_1 + leak * (hi - lo + 2 * expm1l(leak_growth) * largest) +  // (20b)
         lost * (largest + G_v * abs + G_1);
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
  const Real each = sum_g * (G_1 / (W * D) + Pt / D);
  const Real S_U = S_O + (G_v * sum_ay + H * S1) / (W * D) + each;
  const Real U = (G_v * sum_ay + H * fabsl(y)) / (W * D) + each + expl(hat(u_out)) * sum_G2;
  return first / D + expm1l(tau_d + hat(u_out)) * S_U + U + sum_g * eta_out;
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

}  // namespace ringproof::test::literal

namespace ringproof::test {

LiteralBound literal_bound(const oracle::Contract& contract, const RowFixture& f) {
  literal::Literal literal(contract, f.problem, f.row, f.values.data(), f.problem.value_dim);
  literal.run();
  return literal.result;
}

}  // namespace ringproof::test
