// Scores, online and two-pass softmax of one row on the tape (kernel.hpp).
#include "tests/adversary/kernel.hpp"

#include <algorithm>
#include <map>

#include "tests/adversary/accumulate.hpp"
#include "tests/adversary/exponent.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

class RowKernel {
 public:
  RowKernel(Tape& tape, const Contract& contract, const Row& row, const Plan& plan)
      : tape_(tape), contract_(contract), row_(row), plan_(plan), exponent_(tape, contract) {
    constant_ = tape.round(tape.constant(row.scale), contract.score.scale_const_u);
    for (std::int64_t j = 0; j < row.visible(); ++j) scores_.push_back(score(j));
    if (row.sink) sink_ = sink();
    // Exponents and LSE need not use the same constant: the maximum in the LSE may be free of its
    // error.
    if (plan.lse_exact_scale)
      exponent_.rescale_maximum(tape.constant(row.scale) / constant_,
                                plan.sink_scaled ? Traced{} : sink_);
  }

  TracedScores scores() const { return {scores_, capped_, sink_}; }

  TracedRow run() {
    std::vector<Partial> partials;
    for (int r = 0; r < static_cast<int>(plan_.partial_size.size()); ++r) {
      std::vector<std::int64_t> keys;
      for (std::int64_t j = 0; j < row_.visible(); ++j)
        if (plan_.partial[static_cast<std::size_t>(j)] == r) keys.push_back(j);
      const bool with_sink = row_.sink && plan_.sink_partial == r;
      if (keys.empty() && !with_sink) continue;
      if (plan_.normalized) {
        partials.push_back(two_pass(keys, with_sink));
      } else {
        const bool continues = plan_.carried && !partials.empty();
        State state = continues ? handed_over(std::move(partials.back())) : State{};
        if (continues) partials.pop_back();
        partials.push_back(online(keys, r, with_sink, std::move(state)));
      }
    }
    if (contract_.partials.count > 1 && !plan_.carried) {
      Merged merged = merge_partials(tape_, contract_, exponent_, plan_.merge, std::move(partials));
      return {std::move(merged.out), merged.lse};
    }
    return finished(partials.front());
  }

 private:
  struct State {
    Maximum m = {};
    Sum l = {};
    std::vector<Sum> acc = {};
  };

  Traced stores(Traced x, const std::vector<double>& units, double underflow) {
    for (const double unit : units) x = tape_.round(x, unit, underflow);
    return x;
  }

  // (4): the dot product, the scale, the 16-bit stores.
  Traced score(std::int64_t j) {
    std::vector<Term> terms;
    const double unit = product_unit(plan_.score), eta = contract_.score.eta;
    for (std::int64_t t = 0; t < row_.head_dim; ++t) {
      Traced product = tape_.constant(row_.query[static_cast<std::size_t>(t)] *
                                      row_.keys[static_cast<std::size_t>(j * row_.head_dim + t)]);
      product = tape_.round(tape_.round(product, contract_.inputs.load_u), contract_.inputs.load_u);
      terms.push_back({tape_.round(product, unit, eta), t});
    }
    Traced s = accumulate(tape_, plan_.score, eta, terms, {}).value * constant_;
    for (int k = 0; k < contract_.score.scale_roundings; ++k)
      s = tape_.round(s, contract_.softmax.u, eta);
    s = stores(s, contract_.score.store, contract_.score.store_eta);
    if (row_.softcap > 0) s = capped(s);
    capped_.push_back(s);
    if (!row_.bias.empty()) s = added(s, row_.bias[static_cast<std::size_t>(j)]);
    if (!row_.alibi.empty()) s = added(s, row_.alibi[static_cast<std::size_t>(j)]);
    return s;
  }

  // (5): division by the cap, tanh, product with the cap.
  Traced capped(Traced s) {
    const Contract::Softcap& field = contract_.score.softcap;
    s = (1 / row_.softcap) * s;
    for (int k = 0; k < field.roundings; ++k)
      s = tape_.round(s, contract_.softmax.u, contract_.score.eta);
    s = tanh(stores(s, field.store, contract_.score.store_eta));
    s = tape_.shift(s, field.tanh_rel * std::fabs(s.value()) + field.tanh_abs);
    return stores(tape_.round(row_.softcap * s, contract_.softmax.u, contract_.score.eta),
                  field.store, contract_.score.store_eta);
  }

  // (6): a bias term, its own roundings, the addition, the stores after it.
  Traced added(Traced s, double bias) {
    Traced term = tape_.constant(bias);
    const double unit = contract_.softmax.u, eta = contract_.score.eta;
    for (int k = 0; k < contract_.score.bias_roundings; ++k) term = tape_.round(term, unit, eta);
    const Traced sum = bias == 0 ? s : tape_.round(s + term, unit, eta);
    return stores(sum, contract_.score.bias_store, contract_.score.store_eta);
  }

  // A sink in natural units escapes the error of the constant; folded into raw units it does not.
  Traced sink() {
    Traced s = tape_.constant(*row_.sink);
    if (plan_.sink_scaled) s = (*row_.sink / row_.scale) * constant_;
    for (int k = 0; k < contract_.score.sink_roundings; ++k)
      s = tape_.round(s, contract_.softmax.u, contract_.score.eta);
    return s;
  }

  Traced product(std::int64_t j, std::int64_t column, Traced p) {
    const Traced x = tape_.round(row_.value(j, column) * p, contract_.inputs.load_u_v);
    return tape_.round(x, product_unit(plan_.pv), contract_.pv.eta);
  }

  // Two passes: the maximum of the whole row first, P divided by l before the cast.
  Partial two_pass(const std::vector<std::int64_t>& keys, bool with_sink) {
    Traced highest = with_sink ? sink_ : scores_[static_cast<std::size_t>(keys.front())];
    for (const std::int64_t j : keys) highest = max(highest, scores_[static_cast<std::size_t>(j)]);
    const Maximum m = exponent_.maximum(highest);
    std::vector<Term> weights;
    for (const std::int64_t j : keys)
      weights.push_back({exponent_.of_score(scores_[static_cast<std::size_t>(j)], m),
                         plan_.place[static_cast<std::size_t>(j)]});
    std::vector<Term> addends = weights;
    if (with_sink) {
      p_sink_ = exponent_.of_score(sink_, m);
      addends.push_back({p_sink_, row_.total_keys});
    }
    Partial partial{.m = m, .normalized = true};
    partial.l = accumulate(tape_, plan_.l, contract_.l.eta, addends, {}).value;
    for (Term& weight : weights) {
      p_.push_back(share(weight.value, partial.l));
      weight.value = tape_.round(p_.back(), contract_.p.u, contract_.p.eta);
      p_cast_.push_back(weight.value);
    }
    if (with_sink) p_sink_ = share(p_sink_, partial.l);
    for (std::int64_t column = 0; column < row_.value_dim; ++column) {
      std::vector<Term> terms;
      for (std::size_t k = 0; k < keys.size(); ++k)
        terms.push_back({product(keys[k], column, weights[k].value), weights[k].place});
      const Sum sum = accumulate(tape_, plan_.pv, contract_.pv.eta, terms, {});
      partial.acc.push_back(sum.empty() ? tape_.constant(0) : sum.value);
    }
    return partial;
  }

  /// exp(s - m) / l
  Traced share(Traced weight, Traced l) {
    for (int k = 0; k < contract_.finish.roundings; ++k)
      weight = tape_.round(k == 0 ? weight / l : weight, contract_.finish.u);
    return weight;
  }

  /// Key blocks of a partial in the order the kernel visits them. Blocks without a visible key are
  /// visited too when exp(0) is not 1, for then they cost a rescale.
  std::vector<std::vector<std::int64_t>> blocks_of(const std::vector<std::int64_t>& keys,
                                                   int partial) {
    std::map<std::int64_t, std::vector<std::int64_t>> grid;
    if (!contract_.softmax.exp_zero_exact)
      for (std::int64_t at = 0; at < plan_.partial_size[static_cast<std::size_t>(partial)];
           at += plan_.block)
        grid[at / plan_.block];
    for (const std::int64_t j : keys)
      grid[plan_.place[static_cast<std::size_t>(j)] / plan_.block].push_back(j);
    std::vector<std::vector<std::int64_t>> blocks;
    for (auto& [index, block] : grid) blocks.push_back(std::move(block));
    if (plan_.order == Plan::Order::descending) std::reverse(blocks.begin(), blocks.end());
    if (plan_.order == Plan::Order::shuffled) {
      std::mt19937_64 random(plan_.shuffle_seed);
      std::shuffle(blocks.begin(), blocks.end(), random);
    }
    return blocks;
  }

  Partial online(const std::vector<std::int64_t>& keys, int partial, bool with_sink, State state) {
    state.acc.resize(static_cast<std::size_t>(row_.value_dim));
    if (with_sink && plan_.sink_first) absorb_sink(state);
    for (const auto& block : blocks_of(keys, partial)) absorb(state, block);
    if (with_sink && !plan_.sink_first) absorb_sink(state);
    Partial result{.m = state.m, .l = state.l.value};
    for (const Sum& sum : state.acc)
      result.acc.push_back(sum.empty() ? tape_.constant(0) : sum.value);
    return result;
  }

  /// Raises the running maximum to at least `candidate` (lazily, if the contract lets it) and
  /// rescales.
  void raise(State& state, Traced candidate) {
    if (state.m.empty()) {
      state.m = exponent_.maximum(candidate);
      return;
    }
    const double threshold =
        contract_.softmax.lazy ? contract_.softmax.lazy_log2 * std::log(2.0) : 0;
    const bool keep = candidate.value() - state.m.raw.value() <= threshold;
    const Maximum next = keep ? state.m : exponent_.maximum(candidate);
    const Traced alpha = exponent_.rescale(state.m, next);
    state.m = next;
    if (alpha.value() == 1 && contract_.softmax.exp_zero_exact)
      return;  // a product with 1 is exact
    if (!state.l.empty())
      state.l.value = tape_.round(state.l.value * alpha, contract_.l.u, contract_.l.eta);
    for (Sum& sum : state.acc)
      if (!sum.empty())
        sum.value = tape_.round(sum.value * alpha, contract_.pv.u, contract_.pv.eta);
  }

  void absorb_sink(State& state) {
    raise(state, sink_);
    state.l = accumulate(tape_, plan_.l, contract_.l.eta,
                         {{exponent_.of_score(sink_, state.m), std::int64_t{1} << 40}}, state.l);
  }

  void absorb(State& state, const std::vector<std::int64_t>& block) {
    if (block.empty()) {
      if (!state.m.empty()) raise(state, state.m.raw);
      return;
    }
    Traced highest = scores_[static_cast<std::size_t>(block.front())];
    for (const std::int64_t j : block) highest = max(highest, scores_[static_cast<std::size_t>(j)]);
    raise(state, highest);
    const double cast_eta = contract_.p.eta / contract_.p.scale;
    std::vector<Term> weights, casts;
    for (const std::int64_t j : block) {
      const Traced p = exponent_.of_score(scores_[static_cast<std::size_t>(j)], state.m);
      const Traced cast = contract_.p.round == oracle::RoundMode::rn && contract_.p.u > 0
                              ? tape_.round_to_nearest(p, contract_.p.u, cast_eta)
                              : tape_.round(p, contract_.p.u, cast_eta);
      const std::int64_t place = plan_.place[static_cast<std::size_t>(j)];
      weights.push_back({contract_.p.sum_from_cast ? cast : p, place});
      casts.push_back({cast, place});
    }
    state.l = accumulate(tape_, plan_.l, contract_.l.eta, weights, state.l);
    for (std::int64_t column = 0; column < row_.value_dim; ++column) {
      std::vector<Term> terms;
      for (std::size_t k = 0; k < block.size(); ++k)
        terms.push_back({product(block[k], column, casts[k].value), casts[k].place});
      Sum& sum = state.acc[static_cast<std::size_t>(column)];
      sum = accumulate(tape_, plan_.pv, contract_.pv.eta, terms, sum);
    }
  }

  /// The carried form of a ring: (m, l, acc) stored once between two ranks.
  State handed_over(Partial partial) {
    State state{.m = partial.m, .l = {partial.l}};
    for (const Traced acc : partial.acc)
      state.acc.push_back({tape_.round(acc, contract_.partials.run_u, contract_.partials.eta)});
    return state;
  }

  TracedRow finished(const Partial& partial) {
    TracedRow result;
    for (const Traced acc : partial.acc)
      result.out.push_back(partial.normalized ? acc : divide(tape_, contract_, acc, partial.l));
    result.lse = exponent_.lse(partial.m.raw, partial.l, contract_.lse.u);
    result.p = p_;
    result.p_cast = p_cast_;
    result.p_sink = p_sink_;
    if (p_sink_.node >= 0)
      result.p_sink_cast = tape_.round(p_sink_, contract_.p.u, contract_.p.eta);
    return result;
  }

  Tape& tape_;
  const Contract& contract_;
  const Row& row_;
  const Plan& plan_;
  Exponent exponent_;
  Traced constant_, sink_, p_sink_;
  std::vector<Traced> scores_, capped_, p_, p_cast_;
};

}  // namespace

TracedScores recompute_scores(Tape& tape, const Contract& contract, const Row& row,
                              const Plan& plan) {
  return RowKernel(tape, contract, row, plan).scores();
}

TracedRow run_kernel(Tape& tape, const Contract& contract, const Row& row, const Plan& plan) {
  return RowKernel(tape, contract, row, plan).run();
}

}  // namespace ringproof::adversary
