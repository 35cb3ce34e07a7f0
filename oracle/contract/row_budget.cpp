// Constants of one row before merging (row_budget.hpp).
#include "oracle/contract/row_budget.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// The hoisted parts of (4).
void dot_budget(const Contract& c, const Problem& problem, bool temperature, ScoreBudget& out) {
  const double softmax_hat = hat(c.softmax.u);
  const double sigma = c.score.scale_roundings * softmax_hat + sum_of_hats(c.score.store);
  const double gamma_qk = gamma(c.score.acc, Terms::contiguous(problem.head_dim));
  const double underflows =
      2 * static_cast<double>(problem.head_dim) * scale_of(problem) + c.score.scale_roundings + 1;
  out.grow = std::exp(sigma);
  out.dot = std::expm1(gamma_qk + 2 * hat(c.inputs.load_u));
  out.underflow =
      underflows * c.score.eta + static_cast<double>(c.score.store.size()) * c.score.store_eta;
  out.relative = std::expm1(sigma);
  if (!temperature) {
    out.constant_grow = std::exp(hat(c.score.scale_const_u));
    out.constant = std::expm1(hat(c.score.scale_const_u));
  }
}

/// The hoisted parts of (5) and (6). A kernel that stores the scores around a softcap in 16 bits
/// stores three times: the quotient, its tanh, and the product; two of them are behind the tanh.
void after_dot_budget(const Contract& c, const Problem& problem, ScoreBudget& out) {
  const auto& cap = c.score.softcap;
  const double softmax_hat = hat(c.softmax.u);
  const double stores = sum_of_hats(cap.store);
  const double t = hat(cap.tanh_rel) + softmax_hat + 2 * stores;
  const double cap_budget = cap.roundings * softmax_hat + stores;
  const double store_underflow = static_cast<double>(cap.store.size()) * c.score.store_eta;
  out.cap_relative = std::expm1(cap_budget);
  out.cap_underflow =
      std::exp(cap_budget) * problem.spec.softcap * (cap.roundings * c.score.eta + store_underflow);
  out.tanh_grow = std::exp(t);
  const double tanh_underflow = cap.tanh_abs + std::exp(stores) * store_underflow;
  out.tanh_absolute = problem.spec.softcap * tanh_underflow;
  out.tanh_relative = std::expm1(t);
  out.after_underflow = std::exp(stores) * (c.score.eta + store_underflow);
  const double addition = softmax_hat + sum_of_hats(c.score.bias_store);
  const double bias_budget = c.score.bias_roundings * softmax_hat;
  out.bias_term = std::expm1(bias_budget);
  out.bias_underflow = std::exp(bias_budget) * c.score.bias_roundings * c.score.eta;
  out.addition = std::expm1(addition);
  out.store_underflow =
      static_cast<double>(c.score.bias_store.size()) * std::exp(addition) * c.score.store_eta;
  out.addition_underflow = std::exp(addition) * c.score.eta;
}

/// Error of a sink, which has its own products and no scale.
double sink_error(const Contract& c, double sink) {
  const double budget = c.score.sink_roundings * hat(c.softmax.u);
  return std::expm1(budget) * std::fabs(sink) +
         std::exp(budget) * c.score.sink_roundings * c.score.eta;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

/// Every exponential of the row is exp(0) = 1. (26a)
bool all_scores_equal(const Contract& c, const RowBudget& b, const RowTruth& row) {
  if (!c.softmax.exp_zero_exact || c.softmax.lazy || b.keys.has_sink) return false;
  if (c.p.sum_from_cast && !is_power_of_two(c.p.scale)) return false;
  const bool one_partial = b.R == 1 || (c.partials.merge == std::vector{Merge::unnormalized} &&
                                        c.partials.o_u == 0 && c.partials.run_u == 0);
  if (!one_partial || b.terms.count >= std::int64_t{1} << accumulator_digits(c.l.acc)) return false;
  if (!exact_where_representable(c.l.acc)) return false;
  if (c.softmax.arg == ExpArgument::fma_scaled && row.max_score != 0) return false;
  return b.extremes.error == 0 && b.extremes.upper == row.max_score &&
         b.extremes.lower == row.max_score &&
         std::all_of(b.keys.score.begin(), b.keys.score.begin() + b.keys.count,
                     [&](double score) { return score == row.max_score; });
}

/// The keys that may raise the running maximum in the declared order. (10)
double maximum_changes(const RowKeys& keys, bool ascending) {
  double largest = -HUGE_VAL;
  std::int64_t changes = 0;
  for (std::int64_t k = 0; k < keys.visible; ++k) {
    const auto j = static_cast<std::size_t>(ascending ? k : keys.visible - 1 - k);
    changes += k > 0 && keys.score[j] + keys.error[j] > largest;
    largest = std::max(largest, keys.score[j] - keys.error[j]);
  }
  // Whether the sink comes first or last is not declared; either way it is one more change at most.
  return static_cast<double>(changes + keys.has_sink);
}

/// T, and how many rescales multiply by something other than 1. (7), (10), (14)
void count_blocks(const Contract& c, const Problem& problem, RowBudget& b) {
  const std::int64_t sink = b.keys.has_sink;
  const std::int64_t block = c.softmax.block;
  const auto by_position = [&](std::int64_t keys) {
    return (keys + block - 1) / block + b.terms.cuts + sink;
  };
  std::int64_t T = 1, of_partial = 1;
  if (c.p.normalized != Tri::yes) {
    const bool exact = c.softmax.exp_zero_exact;
    const std::int64_t longest =
        c.partials.max_keys > 0 ? std::min(problem.keys, c.partials.max_keys) : problem.keys;
    T = exact ? b.terms.steps(block) + sink : by_position(problem.keys);
    of_partial = std::min(T, exact ? b.partial.steps(block) + sink : by_position(longest));
  }
  b.blocks = static_cast<double>(T);
  b.rescales = b.sum_rescales = static_cast<double>(of_partial - 1);
  if (c.softmax.order != BlockOrder::any && c.softmax.exp_zero_exact && b.R == 1) {
    const double changes = maximum_changes(b.keys, c.softmax.order == BlockOrder::ascending);
    b.rescales = std::min(b.rescales, changes);
    b.sum_rescales = std::min(b.sum_rescales, changes);
  }
}

/// The hoisted parts of (7)-(12).
void argument_budget(const Contract& c, const RowTruth& row, RowBudget& b) {
  ArgumentBudget& out = b.argument;
  const bool fma = c.softmax.arg == ExpArgument::fma_scaled;
  const bool scaled_max = fma && c.softmax.alpha_from == AlphaFrom::scaled_max;
  const double roundings = !fma ? (c.softmax.arg == ExpArgument::sub ? 1 : 3) : scaled_max ? 1 : 2;
  const double us = b.softmax_hat;
  out.max_score = row.max_score;
  out.upper = b.extremes.upper;
  out.temperature = constant_is_temperature(b.keys) ? std::expm1(hat(c.score.scale_const_u)) : 0.0;
  out.temperature_grow = 1 + out.temperature;
  out.sink_temperature = b.keys.has_sink ? out.temperature : 0.0;
  out.lazy = c.softmax.lazy ? c.softmax.lazy_log2 * std::log(2.0) : 0.0;
  out.argument = std::expm1(roundings * us);
  const double rounded_maximum = fma ? std::exp(roundings * us) * us : 0.0;
  out.maximum_lse = rounded_maximum;
  // Within one block the rounded maximum is common to all keys; what the argument's rounding makes
  // of it is not.
  const bool one_block = b.blocks == 1 && b.R == 1;
  const double of_rounding = std::expm1(roundings * us) * us;
  out.maximum = !fma || scaled_max ? 0.0 : one_block ? of_rounding : rounded_maximum;
  out.drift = scaled_max
                  ? std::expm1(us) * 2 * (b.blocks + b.R) * c.softmax.u * std::exp(c.softmax.u)
                  : 0.0;
  out.exp_error = b.exp_hat;
}

/// cast_j from y of key_budgets(). (12)
void casts(const Contract& c, RowKeys& keys) {
  const double all = hat(c.p.u);
  std::fill_n(keys.cast.begin(), keys.count, all);
  const bool near_powers_exact =
      c.p.round == RoundMode::rn && c.p.normalized == Tri::no && is_power_of_two(c.p.scale);
  if (!near_powers_exact || c.p.u == 0) return;
  const double worthwhile = std::log1p(c.p.u);  // beyond this y, the cast has its full budget
  for (std::int64_t k = 0; k < keys.count; ++k) {
    const auto j = static_cast<std::size_t>(k);
    if (keys.reach[j] < worthwhile) {
      keys.cast[j] = std::min(all, -std::log1p(-std::expm1(keys.reach[j])));
    }
  }
}

/// A_j and B_j without the cast and before merging. (13), (14)
void sum_budgets(const Contract& c, RowBudget& b) {
  Terms with_sink = b.partial;
  with_sink.count += b.keys.has_sink;
  with_sink.cuts += b.keys.has_sink;  // the sink is added by a step of its own
  b.gamma_pv = gamma(c.pv.acc, b.partial);
  b.numerator = hat(c.inputs.load_u_v) + b.gamma_pv + b.sum_rescales * hat(c.pv.u);
  if (c.p.normalized != Tri::no) b.numerator += b.division;
  b.denominator = gamma(c.l.acc, with_sink) + b.sum_rescales * hat(c.l.u);
  if (b.equal_scores) b.denominator = 0;
  // A scale that is no power of two rounds when it is applied and when it is taken out.
  if (!is_power_of_two(c.p.scale)) {
    const double twice = 2 * std::max({b.softmax_hat, hat(c.pv.u), hat(c.finish.u)});
    b.numerator += twice;
    if (c.p.sum_from_cast) b.denominator += twice;
  }
}

}  // namespace

double scale_of(const Problem& problem) {
  if (problem.spec.scale) return std::fabs(*problem.spec.scale);
  return (1 + 0x1p-50) / std::sqrt(static_cast<double>(problem.head_dim));
}

bool constant_is_temperature(const RowKeys& keys) {
  return !keys.has_softcap && !keys.has_bias && !keys.has_alibi;
}

void row_budget(const Contract& c, const Problem& problem, const RowTruth& row, RowBudget& b) {
  b.contract = &c;
  b.keys.gather(row);
  RowKeys& keys = b.keys;
  b.n = static_cast<double>(keys.count);
  b.R = static_cast<double>(c.partials.count);
  b.softmax_hat = hat(c.softmax.u);
  b.L = row.lse.hi;
  b.W = std::exp(row.lse.hi - row.max_score);
  b.division = c.finish.roundings * hat(c.finish.u);

  ScoreBudget score;
  dot_budget(c, problem, constant_is_temperature(keys), score);
  b.product_growth = (1 + score.dot) * score.grow * std::exp(hat(c.score.scale_const_u));
  after_dot_budget(c, problem, score);
  score_errors(score, row.score_radius, keys);
  if (keys.has_sink) {
    keys.error[static_cast<std::size_t>(keys.visible)] = sink_error(c, row.sink);
  }
  b.extremes = score_extremes(keys, row.max_score);
  b.lower = b.extremes.lower;

  visible_terms(c, problem, row, keys, b.terms);
  partial_terms(b.terms, c.partials.max_keys, b.partial);
  b.equal_scores = all_scores_equal(c, b, row);
  b.exp_hat = b.equal_scores ? 0.0 : hat(c.softmax.exp_rel);
  count_blocks(c, problem, b);
  argument_budget(c, row, b);
  key_budgets(b.argument, b.extremes, keys);
  casts(c, keys);
  if (c.p.sum_from_cast) {  // numerator and denominator then share the cast
    for (std::size_t j = 0; j < static_cast<std::size_t>(keys.count); ++j) {
      keys.common[j] += keys.cast[j];
      keys.common_lse[j] += keys.cast[j];
      keys.cast[j] = 0;
    }
  }
  b.cast_max = *std::max_element(keys.cast.begin(), keys.cast.begin() + keys.count);
  sum_budgets(c, b);
}

}  // namespace ringproof::oracle
