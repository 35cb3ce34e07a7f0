// Gradients on the tape (backward_kernel.hpp).
#include "tests/adversary/backward_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/adversary/accumulate.hpp"
#include "tests/adversary/exponent.hpp"
#include "tests/adversary/mistakes.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

class BackwardKernel {
 public:
  BackwardKernel(Tape& tape, const Contract& contract, const Head& head, const BackwardPlan& plan)
      : tape_(tape),
        c_(contract),
        b_(contract.backward),
        head_(head),
        plan_(plan),
        rule_(plan.rule != nullptr ? *plan.rule : right_),
        exponent_(tape, contract) {
    scale_ = tape.round(tape.constant(head.rows.front().scale), c_.score.scale_const_u);
  }

  TracedGradients run() {
    for (std::size_t r = 0; r < head_.rows.size(); ++r) row(r);
    TracedGradients result;
    result.dq = std::move(dq_);
    for (std::int64_t j = 0; j < head_.total_keys; ++j) {
      for (std::int64_t d = 0; d < head_.head_dim; ++d)
        result.dk.push_back(of_key(dk_, j, d, true));
      for (std::int64_t c = 0; c < head_.value_dim; ++c) {
        result.dv.push_back(of_key(dv_, j, c, false));
      }
    }
    result.dsinks = tape_.constant(0);  // heads have sinks of their own: no rounding between them
    for (const auto& [h, terms] : sinks_) {
      const Sum sum = accumulate(tape_, plan_.grad, b_.grad_eta, terms, {});
      result.dsinks = result.dsinks + sum.value;
    }
    result.dbias = std::move(dbias_);
    if (plan_.rule != nullptr) {
      misplace(tape_, c_, head_, rule_, plan_.stored_before, result);
    }
    return result;
  }

 private:
  struct Pair {
    Traced p, p_cast, ds;
    Traced p_of_D;  // right, whatever the mistake
  };

  double us() const { return c_.softmax.u; }
  Traced product(Traced x, double by, double load) {
    return tape_.round(tape_.round(by * x, load), product_unit(plan_.grad), b_.grad_eta);
  }
  Traced stores(Traced x, const std::vector<double>& units, double eta) {
    for (const double unit : units) x = tape_.round(x, unit, eta);
    return x;
  }

  /// exp(s - L) in the form of the contract, or to another base. (28)
  Traced probability(Traced score, Traced lse, double exponent) {
    Traced x;
    switch (c_.softmax.arg) {
      case oracle::ExpArgument::sub:
        x = tape_.round(score - lse, us());
        break;
      case oracle::ExpArgument::sub_log2:
        x = tape_.round(tape_.round(tape_.round(score - lse, us()), us()), us());
        break;
      case oracle::ExpArgument::fma_scaled:
        x = tape_.round(score - tape_.round(tape_.round(lse, us()), us()), us());
        break;
    }
    if (exponent != 1) x = tape_.round(exponent * x, us());
    return tape_.round(exp(x), c_.softmax.exp_rel, c_.softmax.exp_eta);
  }
  Traced cast(Traced p) {
    return c_.p.round == oracle::RoundMode::rn ? tape_.round_to_nearest(p, c_.p.u, c_.p.eta)
                                               : tape_.round(p, c_.p.u, c_.p.eta);
  }

  /// 1 - (s / cap)^2 from the capped score. (29)
  Traced factor(Traced capped, double cap) {
    const Traced y = tape_.round((1 / cap) * capped, us(), b_.dp_eta);
    const Traced square = tape_.round(y * y, us(), b_.dp_eta);
    return tape_.round(tape_.constant(1) - square, us(), b_.dp_eta);
  }

  double upstream(std::size_t r, std::int64_t c, bool ones) const {
    return ones ? 1 : head_.upstream(r, c);
  }
  std::int64_t query(std::size_t r) const { return static_cast<std::int64_t>(r) % head_.queries; }
  std::int64_t head_of(std::size_t r) const { return static_cast<std::int64_t>(r) / head_.queries; }

  /// dO.v of a visible key, with this row of V.
  Traced dp(std::size_t r, std::int64_t v_row, bool ones) {
    if (v_row < 0) return tape_.constant(0);
    std::vector<Term> terms;
    for (std::int64_t c = 0; c < head_.value_dim; ++c) {
      const double v = head_.values[static_cast<std::size_t>(v_row * head_.value_dim + c)];
      Traced x = tape_.constant(upstream(r, c, ones) * v);
      x = tape_.round(tape_.round(x, c_.inputs.load_u_v), c_.inputs.load_u_do);
      terms.push_back({tape_.round(x, product_unit(plan_.dp), b_.dp_eta), c});
    }
    return stores(accumulate(tape_, plan_.dp, b_.dp_eta, terms, {}).value, b_.dp_store,
                  b_.dp_store_eta);
  }

  /// D from the stored output, or from P and dP.
  Traced delta(std::size_t r, const TracedRow& forward, const std::vector<Traced>& dp,
               const std::vector<Pair>& pairs) {
    const Row& row = head_.rows[r];
    const double dlse = rule_.without_dlse ? 0 : (rule_.negative_dlse ? -1 : 1) * head_.dlse[r];
    if (rule_.without_D) return tape_.round(tape_.constant(-dlse), us(), b_.D_eta);
    const bool ones = rule_.ones_for_dout_in_D;
    const bool others = rule_.v_row || ones != rule_.ones_for_dout;  // dP as D should have it
    std::vector<Term> terms;
    const auto add = [&](Traced x, std::int64_t place) {
      terms.push_back({tape_.round(x, product_unit(plan_.D), b_.D_eta), place});
    };
    if (plan_.D_from_products) {
      for (std::size_t j = 0; j < dp.size(); ++j) {
        add(pairs[j].p_of_D * (others ? this->dp(r, row.position[j], ones) : dp[j]),
            row.position[j]);
      }
    } else {
      const oracle::Format& format = oracle::format_of(c_.out.dtype);
      const bool nearest = c_.out.round == oracle::RoundMode::rn;
      const double eta =
          c_.out.ftz ? std::ldexp(1.0, format.min_exponent) : format.smallest() / (nearest ? 2 : 1);
      for (std::int64_t k = 0; k < head_.value_dim; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const Traced o = isolated()
                             ? tape_.constant(head_.given_out[r * forward_width() + at])
                             : tape_.round(forward.out[at], format.unit() * (nearest ? 1 : 2), eta);
        add(tape_.round(upstream(r, k, ones) * o, c_.inputs.load_u_do), k);
      }
    }
    Traced sum = accumulate(tape_, plan_.D, b_.D_eta, terms, {}).value;
    if (rule_.negative_D) sum = -sum;
    return tape_.round(sum - tape_.constant(dlse), us(), b_.D_eta);
  }

  bool isolated() const { return b_.mode == oracle::BackwardMode::isolated; }
  std::size_t forward_width() const { return static_cast<std::size_t>(head_.value_dim); }

  Traced ds(Traced p, Traced t, Traced f) {
    const bool capped = f.node >= 0;
    Traced x;
    if (plan_.factor_first && capped) {
      x = tape_.round(p * tape_.round(t * f, us(), b_.dp_eta), us(), b_.dp_eta);
    } else {
      x = tape_.round(p * t, us(), b_.dp_eta);
      if (capped) x = tape_.round(x * f, us(), b_.dp_eta);
    }
    if (plan_.scale_first) x = scaled(x);
    return tape_.round(x, b_.ds_u, b_.ds_eta);
  }
  /// The scale product and the stores around it.
  Traced scaled(Traced x) {
    x = x * scale_;
    for (int k = 0; k < b_.grad_scale_roundings; ++k) x = tape_.round(x, us(), b_.grad_eta);
    return stores(x, b_.grad_store, stored_eta());
  }
  double stored_eta() const {
    const double half = c_.inputs.dtype == oracle::DType::f16 ? 0x1p-25 : 0;
    return std::max({b_.grad_eta, b_.ds_eta, half});
  }
  double stored_unit() const { return std::max(b_.ring.store_u, b_.group_store_u); }

  void row(std::size_t r) {
    const Row& row = head_.rows[r];
    const Plan& plan = plan_.rows[r];
    const TracedRow forward = isolated() ? TracedRow{} : run_kernel(tape_, c_, row, plan);
    const TracedScores scores = recompute_scores(tape_, c_, row, plan);
    const Traced lse = isolated() ? tape_.constant(head_.given_lse[r]) : forward.lse;
    const auto n = static_cast<std::size_t>(row.visible());
    std::vector<Pair> pairs(n);
    std::vector<Traced> products(n);
    for (std::size_t j = 0; j < n; ++j) {
      const std::int64_t key = row.position[j];
      products[j] = dp(r, rule_.v_row ? rule_.v_row(query(r), key) : key, rule_.ones_for_dout);
      if (plan_.stored) {
        pairs[j].p = forward.p[j];
        pairs[j].p_cast = forward.p_cast[j];
      } else {
        pairs[j].p = probability(scores.score[j], lse, 1);
        pairs[j].p_cast = cast(pairs[j].p);
      }
      pairs[j].p_of_D = plan_.cast_in_ds ? pairs[j].p_cast : pairs[j].p;
      if (rule_.p_exponent != 1) {
        pairs[j].p = probability(scores.score[j], lse, rule_.p_exponent);
        pairs[j].p_cast = cast(pairs[j].p);
      }
    }
    const Traced D = delta(r, forward, products, pairs);
    const std::int64_t place = (head_of(r) << 30) + query(r);
    if (plan_.rule != nullptr) {
      dbias_.resize((r + 1) * static_cast<std::size_t>(head_.total_keys), tape_.constant(0));
    }
    for (std::size_t j = 0; j < n; ++j) {
      const Traced t = tape_.round(products[j] - D, us(), b_.dp_eta);
      const bool capped = row.softcap > 0 && !rule_.without_derivative;
      const Traced f = capped ? factor(scores.capped[j], row.softcap) : Traced{};
      pairs[j].ds = ds(plan_.cast_in_ds ? pairs[j].p_cast : pairs[j].p, t, f);
      add_pair(r, row.position[j], place, pairs[j], t, f);
    }
    queries(r, pairs);
    if (row.sink) sink(r, place, forward, scores, lse, D);
  }

  /// The pair's terms of dk, dv and dbias.
  void add_pair(std::size_t r, std::int64_t key, std::int64_t place, const Pair& pair, Traced t,
                Traced f) {
    const bool of_dk = weight_of(rule_.counts_k, head_of(r), query(r), key) != 0;
    const bool of_dv = weight_of(rule_.counts_v, head_of(r), query(r), key) != 0;
    for (std::int64_t d = 0; of_dk && d < head_.head_dim; ++d) {
      const double q = head_.rows[r].query[static_cast<std::size_t>(d)];
      dk_[key * head_.head_dim + d].push_back({product(pair.ds, q, c_.inputs.load_u), place});
    }
    for (std::int64_t c = 0; of_dv && c < head_.value_dim; ++c) {
      const double upstream_c = upstream(r, c, rule_.ones_for_dout);
      dv_[key * head_.value_dim + c].push_back(
          {product(pair.p_cast, upstream_c, c_.inputs.load_u_do), place});
    }
    if (plan_.rule == nullptr) return;
    const oracle::PairPlace of_bias{0, head_of(r), query(r), key};
    if (rule_.counts_bias && rule_.counts_bias(of_bias) == 0) return;
    Traced x = tape_.round((plan_.cast_in_ds ? pair.p_cast : pair.p) * t, us(), b_.dp_eta);
    if (rule_.derivative_in_bias && f.node >= 0) x = tape_.round(x * f, us(), b_.dp_eta);
    dbias_[r * static_cast<std::size_t>(head_.total_keys) + static_cast<std::size_t>(key)] =
        stores(tape_.round(x, b_.ds_u, b_.ds_eta), b_.grad_store, stored_eta());
  }

  void queries(std::size_t r, const std::vector<Pair>& pairs) {
    const Row& row = head_.rows[r];
    for (std::int64_t d = 0; d < head_.head_dim; ++d) {
      std::vector<Term> terms;
      for (std::size_t j = 0; j < pairs.size(); ++j) {
        const std::int64_t key = row.position[j];
        const std::int64_t k_row = rule_.k_row ? rule_.k_row(query(r), key) : key;
        if (k_row < 0 || weight_of(rule_.counts_q, head_of(r), query(r), key) == 0) continue;
        const double k = head_.keys[static_cast<std::size_t>(k_row * head_.head_dim + d)];
        terms.push_back({product(pairs[j].ds, k, c_.inputs.load_u), row.position[j]});
      }
      const Traced sum = partial_sums(terms, b_.ring.count_keys, head_.total_keys);
      dq_.push_back(plan_.scale_first ? sum : scaled(sum));
    }
  }

  void sink(std::size_t r, std::int64_t place, const TracedRow& forward, const TracedScores& scores,
            Traced lse, Traced D) {
    Traced p = plan_.stored ? forward.p_sink : probability(scores.sink, lse, rule_.p_exponent);
    if (plan_.stored && plan_.cast_in_ds) p = forward.p_sink_cast;
    if (rule_.without_p_sink) p = tape_.constant(1);
    const oracle::PairPlace of_sink{0, head_of(r), query(r), 0};
    if (rule_.counts_sinks && rule_.counts_sinks(of_sink) == 0) return;
    Traced x = tape_.round(p * D, us(), b_.grad_eta);
    if (plan_.stored) {
      x = tape_.round(x, b_.ds_u, b_.ds_eta);
      x = stores(x, b_.grad_store, stored_eta());
    }
    sinks_[static_cast<std::int64_t>(r) / head_.queries].push_back({-x, place});
  }

  /// Chunks of `chunk` places (or equal shares of a ring), each summed from zero, added to the
  /// running sum and stored.
  Traced partial_sums(const std::vector<Term>& terms, std::int64_t chunk, std::int64_t places) {
    if (terms.empty()) return tape_.constant(0);
    if (chunk == 0) chunk = (places + b_.ring.count - 1) / b_.ring.count;
    constexpr std::int64_t kHead = std::int64_t{1} << 30;
    Traced running;
    for (std::size_t first = 0, last = 0; first < terms.size(); first = last) {
      const std::int64_t part = terms[first].place % kHead / chunk;
      while (last < terms.size() && terms[last].place % kHead / chunk == part) ++last;
      const std::vector<Term> piece(terms.begin() + static_cast<std::ptrdiff_t>(first),
                                    terms.begin() + static_cast<std::ptrdiff_t>(last));
      const Traced sum = accumulate(tape_, plan_.grad, b_.grad_eta, piece, {}).value;
      running = running.node < 0 ? sum : tape_.round(running + sum, b_.ring.acc_u, b_.grad_eta);
      if (stored_unit() > 0) running = tape_.round(running, stored_unit(), stored_eta());
    }
    return running;
  }

  /// All rows of all heads that see the key.
  Traced of_key(std::map<std::int64_t, std::vector<Term>>& sums, std::int64_t j, std::int64_t d,
                bool query) {
    const std::vector<Term>& terms = sums[j * (query ? head_.head_dim : head_.value_dim) + d];
    if (terms.empty()) return tape_.constant(0);
    Traced total;
    const bool apart = plan_.heads_apart || b_.ring.count > 1 || b_.ring.count_rows > 0;
    if (!apart) {
      total = accumulate(tape_, plan_.grad, b_.grad_eta, terms, {}).value;
      if (stored_unit() > 0) total = tape_.round(total, stored_unit(), stored_eta());
    }
    for (std::size_t first = 0, last = 0; apart && first < terms.size(); first = last) {
      while (last < terms.size() && terms[last].place >> 30 == terms[first].place >> 30) ++last;
      const std::vector<Term> of_head(terms.begin() + static_cast<std::ptrdiff_t>(first),
                                      terms.begin() + static_cast<std::ptrdiff_t>(last));
      Traced sum = partial_sums(of_head, b_.ring.count_rows, head_.queries);
      if (head_.group > 1 && stored_unit() > 0) sum = tape_.round(sum, stored_unit(), stored_eta());
      total = total.node < 0 ? sum : tape_.round(total + sum, b_.ring.acc_u, b_.grad_eta);
    }
    return query && !plan_.scale_first ? scaled(total) : total;
  }

  Tape& tape_;
  const Contract& c_;
  const Contract::Backward& b_;
  const Head& head_;
  const BackwardPlan& plan_;
  const oracle::GradientRule right_;  // no mistake
  const oracle::GradientRule& rule_;
  Exponent exponent_;
  Traced scale_;
  std::vector<Traced> dq_;
  std::map<std::int64_t, std::vector<Term>> dk_, dv_;  // by key and column
  std::map<std::int64_t, std::vector<Term>> sinks_;    // by head
  std::vector<Traced> dbias_;
};

const oracle::Accumulator& one_of(const oracle::Accumulator& model, std::mt19937_64& random) {
  if (model.model != oracle::Accumulator::Model::max) return model;
  return one_of(model.of[random() % model.of.size()], random);
}

}  // namespace

BackwardPlan draw_backward_plan(const Contract& contract, const Head& head,
                                std::mt19937_64& random) {
  const Contract::Backward& b = contract.backward;
  const bool isolated = b.mode == oracle::BackwardMode::isolated;
  const auto coin = [&] { return random() % 2 == 0; };
  BackwardPlan plan{.dp = one_of(b.dp_acc, random),
                    .D = one_of(b.D_acc, random),
                    .grad = one_of(b.grad_acc, random)};
  for (const Row& row : head.rows) plan.rows.push_back(draw_plan(contract, row, random));
  // A stored P is that of a two-pass kernel with one partial.
  const bool may_store = !isolated && b.p_from != oracle::ProbabilityFrom::recompute &&
                         contract.p.normalized != oracle::Tri::no && contract.partials.count == 1;
  plan.stored = may_store && (b.p_from == oracle::ProbabilityFrom::stored || coin());
  if (plan.stored) {
    for (Plan& row : plan.rows) row.normalized = true;
  }
  plan.D_from_products =
      !isolated && (b.D_from == oracle::DFrom::p_dp || (b.D_from == oracle::DFrom::any && coin()));
  plan.cast_in_ds = b.ds_from_cast && coin();
  plan.factor_first = coin();
  plan.scale_first = coin();
  plan.heads_apart = coin();
  return plan;
}

TracedGradients run_backward(Tape& tape, const Contract& contract, const Head& head,
                             const BackwardPlan& plan) {
  return BackwardKernel(tape, contract, head, plan).run();
}

}  // namespace ringproof::adversary
