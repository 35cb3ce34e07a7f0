#include "tests/unit/diagnose/literal_boxes.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::test {
namespace {

using oracle::Contract;
using oracle::GradientPairs;
using oracle::GradientRule;

constexpr Real kInfinity = HUGE_VALL;
// What the evaluation in binary64 adds, as the page says.
constexpr Real kUnit = 0x1p-53L, kEvaluation = 0x1p-39L, kDerivative = 0x1p-50L;

Real hat(Real u) { return -std::log1p(-u); }
std::size_t at(std::int64_t n) { return static_cast<std::size_t>(n); }
Real times(const GradientRule::Pair& counts, std::int64_t h, std::int64_t i, std::int64_t j) {
  return counts ? counts(h, i, j) : 1.0;
}

/// A row with the numbers of the mistake.
struct Row {
  const oracle::RowOfHead* of;
  std::vector<Real> upstream;
  Real delta, radius, error;  // D' - dL', how far it may be off here, ED'
  Real Lam, Aq, dp_underflow;
};

/// A pair with the numbers of the mistake.
struct Pair {
  Real p, tf, f;        // tf: |t f| with the radius of t
  Real dS, radius;      // centre of p t f, and its own radius
  Real ES, es;          // (29)
  Real of_key;          // the braces of (32) but for es
  Real expm1_value, P;  // expm1(XV + Lam' + what a factor adds), p with its error
  bool unknown;         // H1 fails
  Real largest() const { return std::fabs(dS) + radius + ES + es; }
};

class Literal {
 public:
  Literal(const Contract& contract, const GradientPairs& pairs, const GradientRule& rule,
          const oracle::BiasBudget& bias)
      : c_(contract), g_(pairs), rule_(rule), bias_(bias) {
    const Contract::Backward& b = contract.backward;
    us_ = hat(contract.softmax.u);
    add_ = hat(b.ring.acc_u) + hat(std::max<Real>(b.ring.store_u, b.group_store_u));
    heads_ = static_cast<std::int64_t>(pairs.heads.size());
    for (std::int64_t n = 0; n < heads_; ++n) {
      for (std::int64_t i = 0; i < g_.queries; ++i) rows_.push_back(row(n, i));
    }
    for (std::int64_t n = 0; n < heads_; ++n) {
      for (std::int64_t i = 0; i < g_.queries; ++i) {
        for (std::int64_t j = 0; j < g_.keys; ++j) {
          const bool seen = held(n, i, j).p != 0;
          pairs_.push_back(seen ? pair(n, i, j, !rule_.without_derivative) : Pair{});
        }
      }
    }
  }

  LiteralBoxes run() const {
    LiteralBoxes all;
    all.dq = LiteralBox(at(heads_ * g_.queries * g_.head_dim));
    all.dk = LiteralBox(at(g_.keys * g_.head_dim));
    all.dv = LiteralBox(at(g_.keys * g_.value_dim));
    all.dbias = LiteralBox(at(heads_ * g_.queries * g_.keys));
    all.dsinks = LiteralBox(at(heads_));
    for (std::int64_t n = 0; n < heads_; ++n) {
      for (std::int64_t i = 0; i < g_.queries; ++i) {
        query(n, i, all.dq);
        for (std::int64_t j = 0; j < g_.keys; ++j) bias(n, i, j, all.dbias);
      }
      sink(n, all.dsinks);
    }
    for (std::int64_t j = 0; j < g_.keys; ++j) {
      key(j, all.dk);
      value(j, all.dv);
    }
    return all;
  }

 private:
  const oracle::PairOfHead& held(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return g_.heads[at(n)].pairs[at(i * g_.keys + j)];
  }
  const Row& row_of(std::int64_t n, std::int64_t i) const { return rows_[at(n * g_.queries + i)]; }
  const Pair& pair_of(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return pairs_[at((n * g_.queries + i) * g_.keys + j)];
  }

  /// A constant that is no power of two, and its product, round; a gradient that is added up n
  /// times, n - 1 times.
  Real added(Real factor) const {
    if (factor == 1) return 0;
    int exponent = 0;
    const bool power = factor == 0 || std::fabs(std::frexp(factor, &exponent)) == 0.5L;
    return (power ? 0 : 2 * us_) + (rule_.copies - 1) * add_;
  }
  Real s1(Real factor) const {
    return std::max<Real>(1, std::fabs(g_.scale)) * std::max<Real>(1, std::fabs(factor));
  }
  Real more(std::int64_t j) const {
    return both_added(rule_) ? g_.key[at(j)].budget_value + add_ : 0;
  }

  Row row(std::int64_t n, std::int64_t i) const {
    const oracle::HeadPairs& head = g_.heads[at(n)];
    Row r{};
    r.of = &head.rows[at(i)];
    const oracle::GradientBudget& b = r.of->budget;
    for (std::int64_t c = 0; c < g_.value_dim; ++c) {
      r.upstream.push_back(rule_.ones_for_dout ? 1 : head.dout[at(i * g_.value_dim + c)]);
    }
    const bool of_ones = rule_.ones_for_dout_in_D;
    Real D = of_ones ? r.of->ones.D : r.of->D;
    Real before = of_ones ? r.of->ones.delta_error : b.delta_before;
    r.radius = of_ones ? r.of->ones.D_radius : b.delta_radius;
    if (rule_.negative_D) D = -D;
    if (rule_.without_D) D = before = r.radius = 0;
    Real dL = r.of->dlse;
    if (rule_.negative_dlse) dL = -dL;
    if (rule_.without_dlse) dL = 0;
    r.delta = D - dL;
    r.error = before + std::expm1(us_) * (std::fabs(r.delta) + before) + c_.backward.D_eta;
    r.Lam = b.common * std::max<Real>(1, rule_.p_exponent);
    r.Aq = b.after_query + added(rule_.factor_q);
    r.dp_underflow = rule_.ones_for_dout ? r.of->ones.dp_underflow : b.dp_underflow;
    return r;
  }

  /// What is left of `budget`, that of p, for p^a.
  Real raised(Real p, Real budget) const {
    const Real a = rule_.p_exponent;
    if (a == 1) return budget;
    return std::max<Real>(1, a) * budget +
           std::expm1(2 * us_) * a * (std::fabs(std::log(p)) + budget) +
           (p > 0.5L ? hat(c_.p.u) : 0);
  }

  Pair pair(std::int64_t n, std::int64_t i, std::int64_t j, bool with_f) const {
    const oracle::HeadPairs& head = g_.heads[at(n)];
    const oracle::PairOfHead& of = held(n, i, j);
    const Row& r = row_of(n, i);
    const oracle::GradientBudget& b = r.of->budget;
    Real dP = of.dp, size = of.abs_dp, dP_radius = b.dp_radius;
    if (rule_.v_row || rule_.ones_for_dout) {
      const std::int64_t from = rule_.v_row ? rule_.v_row(i, j) : j;
      dP = size = 0;
      for (std::int64_t c = 0; from >= 0 && c < g_.value_dim; ++c) {
        const Real term = r.upstream[at(c)] * g_.v[at(from * g_.value_dim + c)];
        dP += term;
        size += std::fabs(term);
      }
      dP_radius = kUnit * static_cast<Real>(g_.value_dim + 1) * size;
    }
    const Real radius = dP_radius + r.radius + 2 * kUnit * (std::fabs(dP) + std::fabs(r.delta));
    const Real t = dP - r.delta, largest = std::fabs(t) + radius;
    const bool capped = with_f && !head.derivatives.empty();
    const std::size_t cell = at(i * g_.keys + j);
    const Real f = capped ? head.derivatives[cell].f : 1.0;
    const Real Ef = capped ? head.derivatives[cell].error : 0.0F;
    // The radius of the right dP counts in any case.
    const Real EP = b.dp_dot * size + b.dp_relative * (std::fabs(dP) + b.dp_radius + dP_radius) +
                    r.dp_underflow;
    const Real Y = raised(of.p, std::log1p(Real{of.in_ds}));
    const Real Yq = raised(of.p, std::log1p(Real{of.in_query})) + added(rule_.factor_q);
    const Real YV = raised(of.p, std::log1p(Real{of.in_value})) + added(rule_.factor_v) + more(j);

    Pair x{};
    x.p = std::pow(Real{of.p}, rule_.p_exponent);
    x.f = std::fabs(f);
    x.tf = largest * x.f;
    x.dS = x.p * t * f;
    x.radius = x.p * (x.f * radius + largest * (kEvaluation * x.f + (capped ? kDerivative : 0)));
    const Real F = x.f + Ef, ED = r.error, g = r.of->lost_ds;
    const Real ge = g * b.grow_product * (largest + EP + ED) * F;
    x.ES = x.p * (std::expm1(Y) * x.tf + std::exp(Y) * (largest * Ef + F * (EP + ED))) + ge;
    x.es =
        b.cast_underflow +
        b.grow_product * (b.underflow * (1 + F) * (1 + x.p * std::exp(Y) + g) + b.scale_underflow);
    x.of_key = x.p * (std::expm1(Yq) * (x.tf + x.f * ED) +
                      std::exp(Yq) * (largest * Ef + F * EP + Ef * ED)) +
               ge * std::exp(r.Aq);
    x.expm1_value = std::expm1(YV);
    x.P = x.p * std::exp(YV);
    x.unknown = !r.of->bounded || size + EP > g_.limits.dp ||
                2 * (size + EP) + std::fabs(r.delta) + ED > g_.limits.difference ||
                (x.p * x.tf + x.ES + x.es) * std::max<Real>(1, std::fabs(g_.scale)) > g_.limits.ds;
    return x;
  }

  /// (32)
  void query(std::int64_t n, std::int64_t i, LiteralBox& box) const {
    const Row& r = row_of(n, i);
    const Real c = rule_.factor_q, sigma = g_.scale * c, rounds = kUnit * (Real(g_.keys) + 8);
    const std::int64_t h = g_.heads[at(n)].h;
    for (std::int64_t d = 0; d < g_.head_dim; ++d) {
      Real dQ = 0, bound = 0, mean = 0, mean_size = 0, sizes = 0;
      bool unknown = false;
      for (std::int64_t j = 0; j < g_.keys; ++j) {
        const Pair& x = pair_of(n, i, j);
        const std::int64_t from = rule_.k_row ? rule_.k_row(i, j) : j;
        const Real w = times(rule_.counts_q, h, i, j);
        if (x.p == 0 || from < 0 || w == 0 || c == 0) continue;
        const Real k = g_.k[at(from * g_.head_dim + d)];
        unknown = unknown || x.unknown;
        dQ += sigma * w * x.dS * k;
        mean += w * x.p * x.f * k;
        mean_size += w * x.p * x.f * std::fabs(k);
        bound += std::fabs(k) * (std::fabs(sigma) * w * std::exp(r.Lam) *
                                     (x.of_key + x.radius + rounds * std::fabs(x.dS)) +
                                 s1(c) * std::exp(r.Aq) * x.es);
        sizes += x.largest();
      }
      bound += std::fabs(sigma) * std::exp(r.Lam) * r.error *
               (std::fabs(mean) + (2 * kEvaluation + rounds) * mean_size);
      bound += std::expm1(r.Lam) * std::fabs(dQ);
      const Real N = r.of->query_underflow;
      if (c != 0) bound += s1(c) * std::exp(r.Aq) * (N + g_.sum_underflow * sizes);
      unknown = unknown || sizes * s1(c) * std::exp(r.Aq) * largest(g_.k) > g_.limits.sum;
      const std::size_t place = at((n * g_.queries + i) * g_.head_dim + d);
      box.value[place] = dQ;
      box.bound[place] = unknown ? kInfinity : bound;
    }
  }

  /// (31)
  void key(std::int64_t j, LiteralBox& box) const {
    const Real c = rule_.factor_k, sigma = g_.scale * c;
    if (c == 0) return;
    const Real A = g_.key[at(j)].budget_query + added(c) + more(j);
    const Real rounds = kUnit * (Real(heads_ * g_.queries) + 8);
    for (std::int64_t d = 0; d < g_.head_dim; ++d) {
      Real dK = 0, bound = 0, sizes = 0, largest_query = 0;
      bool unknown = false;
      for (std::int64_t n = 0; n < heads_; ++n) {
        const oracle::HeadPairs& head = g_.heads[at(n)];
        largest_query = std::max(largest_query, largest(head.q));
        for (std::int64_t i = 0; i < g_.queries; ++i) {
          const Pair& x = pair_of(n, i, j);
          const Real w = times(rule_.counts_k, head.h, i, j);
          if (x.p == 0 || w == 0) continue;
          const Real q = head.q[at(i * g_.head_dim + d)];
          unknown = unknown || x.unknown;
          dK += sigma * w * x.dS * q;
          bound +=
              std::fabs(q) *
              (std::fabs(sigma) * w *
                   (std::exp(A) * (x.ES + x.radius) + (std::expm1(A) + rounds) * std::fabs(x.dS)) +
               s1(c) * std::exp(A) * x.es);
          sizes += x.largest();
        }
      }
      bound += s1(c) * std::exp(A) * (g_.key[at(j)].underflow + g_.sum_underflow * sizes);
      unknown = unknown || s1(c) * std::exp(A) * sizes * largest_query > g_.limits.sum;
      box.value[at(j * g_.head_dim + d)] = dK;
      box.bound[at(j * g_.head_dim + d)] = unknown ? kInfinity : bound;
    }
  }

  /// (30)
  void value(std::int64_t j, LiteralBox& box) const {
    const Real c = rule_.factor_v, grows = std::max<Real>(1, std::fabs(c));
    if (c == 0) return;
    const Real GV = g_.key[at(j)].budget_value + added(c) + more(j);
    const Real rounds = kUnit * (Real(heads_ * g_.queries) + 8);
    for (std::int64_t d = 0; d < g_.value_dim; ++d) {
      Real dV = 0, bound = 0, sizes = 0, largest_upstream = rule_.ones_for_dout ? 1 : 0;
      bool unknown = false;
      for (std::int64_t n = 0; n < heads_; ++n) {
        const oracle::HeadPairs& head = g_.heads[at(n)];
        if (!rule_.ones_for_dout) {
          largest_upstream = std::max(largest_upstream, largest(head.dout));
        }
        for (std::int64_t i = 0; i < g_.queries; ++i) {
          const Pair& x = pair_of(n, i, j);
          const Row& r = row_of(n, i);
          const Real w = times(rule_.counts_v, head.h, i, j);
          if (x.p == 0 || w == 0) continue;
          const Real dO = r.upstream[at(d)], gV = r.of->lost_dv * std::exp(GV);
          unknown = unknown || !r.of->bounded;
          dV += c * w * x.p * dO;
          bound +=
              std::fabs(dO * c) * w * (x.p * x.expm1_value + gV + x.p * (2 * kEvaluation + rounds));
          sizes += x.P + gV;
        }
      }
      bound += grows * std::exp(GV) * (g_.key[at(j)].underflow + g_.sum_underflow * sizes);
      unknown = unknown || grows * std::exp(GV) * sizes * largest_upstream > g_.limits.sum;
      box.value[at(j * g_.value_dim + d)] = dV;
      box.bound[at(j * g_.value_dim + d)] = unknown ? kInfinity : bound;
    }
  }

  void bias(std::int64_t n, std::int64_t i, std::int64_t j, LiteralBox& box) const {
    if (held(n, i, j).p == 0) return;
    const Real c = rule_.factor_bias,
               w = rule_.counts_bias ? rule_.counts_bias({g_.b, g_.heads[at(n)].h, i, j}) : 1.0;
    const std::size_t place = at((n * g_.queries + i) * g_.keys + j);
    if (c * w == 0) return;
    const Pair x = pair(n, i, j, rule_.derivative_in_bias);
    box.value[place] = c * w * x.dS;
    box.bound[place] =
        x.unknown ? kInfinity
                  : added_up(c, w, bias_.budget, x.dS, x.ES + x.radius, x.es + bias_.underflow) +
                        9 * kUnit * std::fabs(c * w * x.dS);
  }

  /// One addend under the budget G of what it passes: e^G (error + underflow) + expm1(G) |.|
  Real added_up(Real c, Real w, Real G, Real size, Real error, Real underflow) const {
    const Real budget = G + added(c), scale = std::fabs(c * w);
    return std::exp(budget) * (scale * error + std::max<Real>(1, scale) * underflow) +
           std::expm1(budget) * scale * std::fabs(size);
  }

  /// (33)
  void sink(std::int64_t n, LiteralBox& box) const {
    const Real c = rule_.factor_sinks;
    Real sizes = 0;
    std::int64_t terms = 0;
    for (std::int64_t i = 0; i < g_.queries; ++i) {
      const Row& r = row_of(n, i);
      const oracle::SinkParts& of = r.of->sink;
      const Real w = rule_.counts_sinks ? rule_.counts_sinks({g_.b, g_.heads[at(n)].h, i, 0}) : 1.0;
      if (c * w == 0) continue;
      Real p = of.p, g = of.lost, X = of.probability;
      if (rule_.without_p_sink) {
        p = 1;
        g = X = 0;
      } else if (p > 0) {
        X = raised(p, X);
        p = std::pow(p, rule_.p_exponent);
      }
      const Real Ys = X + of.after, size = std::fabs(r.delta) + r.radius;
      const Real error = p * std::expm1(Ys) * size + p * std::exp(Ys) * r.error +
                         g * std::exp(Ys) * (size + r.error) + p * (kEvaluation * size + r.radius);
      box.value[at(n)] -= c * w * p * r.delta;
      box.bound[at(n)] += added_up(c, w, 0, p * r.delta, error, of.underflow);
      if (!r.of->bounded) box.bound[at(n)] = kInfinity;
      sizes += std::fabs(c * w * p * r.delta);
      ++terms;
    }
    box.bound[at(n)] += kUnit * (Real(terms) + 8) * sizes;
  }

  static Real largest(const std::vector<double>& numbers) {
    Real most = 0;
    for (const double x : numbers) most = std::max<Real>(most, std::fabs(x));
    return most;
  }

  const Contract& c_;
  const GradientPairs& g_;
  const GradientRule& rule_;
  const oracle::BiasBudget& bias_;
  Real us_ = 0, add_ = 0;
  std::int64_t heads_ = 0;
  std::vector<Row> rows_;
  std::vector<Pair> pairs_;
};

}  // namespace

LiteralBoxes literal_boxes(const Contract& contract, const GradientPairs& pairs,
                           const GradientRule& rule, const oracle::BiasBudget& bias) {
  LiteralBoxes all = Literal(contract, pairs, rule, bias).run();
  store_boxes(contract, pairs, rule, all);
  return all;
}

}  // namespace ringproof::test
