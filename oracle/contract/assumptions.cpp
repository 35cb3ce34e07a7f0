// No overflow anywhere (assumptions.hpp).
#include "oracle/contract/assumptions.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/gradient_shape.hpp"

namespace ringproof::oracle {

namespace {

/// Omega of the formats that scores pass through.
double largest_score(const Contract& c) {
  double omega = largest_of_format(c.softmax.u, c.score.eta);
  for (const auto* store : {&c.score.store, &c.score.bias_store, &c.score.softcap.store}) {
    for (const double u : *store) omega = std::min(omega, largest_of_format(u, c.score.store_eta));
  }
  return omega;
}

/// sum_t |q_t k_jt| of the row's largest key, before the scale.
double largest_product_sum(const RowBudget& row, const Problem& problem, const RowTruth& truth) {
  const double scale = problem.spec.scale_of(problem.head_dim);
  if (scale != 0) return row.extremes.abs_dot / std::fabs(scale);
  double largest = 0;
  const std::int64_t kv = problem.kv_head(truth.h);
  for (std::int64_t k = 0; k < row.keys.visible; ++k) {
    const std::int64_t j = truth.keys.first + row.keys.index[static_cast<std::size_t>(k)];
    double sum = 0;
    for (std::int64_t t = 0; t < problem.head_dim; ++t) {
      sum +=
          std::fabs(problem.q.at(truth.b, truth.h, truth.i, t) * problem.k.at(truth.b, kv, j, t));
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

/// The products of q and k as they are summed, before the scale or behind it.
bool products_fit(const RowBudget& row, const Problem& problem, const RowTruth& truth,
                  double omega) {
  const double sum = largest_product_sum(row, problem, truth) * row.product_growth;
  return sum * std::max(1.0, scale_of(problem)) <= omega;
}

/// The score between its additions: far below, it may overflow, since the key has no weight then.
bool additions_fit(const RowKeys& keys, double omega) {
  if (!keys.has_bias || !keys.has_alibi) return true;
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys.visible); ++j) {
    const bool weightless = keys.score[j] < -omega;
    const double score = keys.has_softcap ? keys.capped[j] : keys.dot[j];
    double above = 0, below = 0;
    for (const double x : {score, keys.bias[j], keys.alibi[j]}) {
      (x > 0 ? above : below) += std::fabs(x);
    }
    const double limit = weightless ? omega / 2 : omega - keys.error[j];
    if (!(above <= limit) || !(below <= limit || weightless)) return false;
  }
  return true;
}

/// The largest magnitude of a maximum. Those of blocks without a key of weight are not asked.
double largest_maximum(const RowBudget& row) {
  return row.argument.temperature_grow * std::max(std::fabs(row.upper()), std::fabs(row.lower));
}

/// Maxima, and what they are multiplied by in a fused argument.
bool maxima_fit(const RowBudget& row, double omega) {
  const bool fused = row.contract->softmax.arg == ExpArgument::fma_scaled;
  const double grown = fused ? std::exp(4 * row.softmax_hat) / std::log(2.0) : 1;
  return largest_maximum(row) * grown <= omega;
}

/// What a computed exponential is at most: e^tau, grown by its own error and its argument's.
double largest_exponential(const RowBudget& row) {
  const double of_argument =
      row.argument.argument * row.lazy() +
      row.argument.maximum_lse *
          (largest_maximum(row) + row.argument.temperature_grow * row.lazy());
  return std::exp(row.lazy() + of_argument + row.exp_hat);
}

/// A + B: how far sums and partials grow. Of merges by LSE, of the keys that have a share: the
/// weights of a merge are no larger than 1 otherwise.
double largest_budget(const RowBudget& row, const MergeBudget& budget) {
  if (!budget.uniform) return lost_shares(row.keys, budget.of_key).heavy;
  return budget.numerator_max + budget.denominator_max;
}

/// Omega of the sums of values, and of what partials are stored in.
double largest_accumulator(const Contract& c) {
  double omega = largest_of_format(c.pv.u, c.pv.eta);
  for (const double u : {c.partials.o_u, c.partials.run_u}) {
    if (c.partials.count > 1 && u > 0) {
      omega = std::min(omega, largest_of_format(u, c.partials.eta));
    }
  }
  return omega;
}

}  // namespace

double largest_of_format(double u, double eta) {
  // The underflow tells formats with few exponent bits apart; without one the range is that of
  // fp32, or of fp64 where the relative error says so.
  if (u <= 0x1p-50 && eta < 0x1p-1000) return format_of(DType::f64).largest;
  if (eta < 0x1p-100) return format_of(u >= 0x1p-8 ? DType::bf16 : DType::f32).largest;
  if (u <= 0x1p-10) return format_of(DType::f16).largest;
  return format_of(eta > 0x1p-13 ? DType::f8_e4m3 : DType::f8_e5m2).largest;
}

std::string failed_assumption(const RowBudget& row, std::span<const FormSums> forms,
                              const Problem& problem, const RowTruth& truth,
                              const ColumnRange& range, std::int64_t columns) {
  const Contract& c = *row.contract;
  const double omega = largest_score(c);
  if (!products_fit(row, problem, truth, omega) || !additions_fit(row.keys, omega) ||
      !maxima_fit(row, omega)) {
    return "H1: a score may overflow";
  }
  const double exponential = largest_exponential(row);
  const double probability = exponential * c.p.scale * std::exp(row.softmax_hat + hat(c.p.u));
  if (c.p.u > 0 && !(probability <= largest_of_format(c.p.u, c.p.eta))) {
    return "H1: a probability may overflow";
  }
  double largest_sum = 0, budget = 0;
  for (std::int64_t k = 0; k < columns; ++k) {
    largest_sum = std::max(largest_sum, range.abs_sum[static_cast<std::size_t>(k)]);
  }
  for (const FormSums& form : forms) budget = std::max(budget, largest_budget(row, form.budget));
  const double grown = std::exp(budget);
  if (!(probability * largest_sum * grown <= largest_accumulator(c))) {
    return "H1: the sum of values may overflow";
  }
  const double addend = c.p.sum_from_cast ? probability : exponential;
  if (!(row.n * addend * grown <= largest_of_format(c.l.u, c.l.eta))) {
    return "H1: the denominator may overflow";
  }
  return {};
}

GradientLimits gradient_limits(const Contract& c) {
  const Contract::Backward& b = c.backward;
  const double difference = largest_of_format(c.softmax.u, b.dp_eta);
  GradientLimits limits{.dp = difference,
                        .difference = difference,
                        .ds = largest_of_format(b.ds_u > 0 ? b.ds_u : c.softmax.u, b.ds_eta),
                        .sum = largest_gradient_sum(c)};
  for (const double u : b.dp_store) {
    limits.dp = std::min(limits.dp, largest_of_format(u, b.dp_store_eta));
  }
  return limits;
}

}  // namespace ringproof::oracle
