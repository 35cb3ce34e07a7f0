// Pairs and sinks under a rule (gradient_row.hpp).
#include "oracle/diagnose/gradient_row.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Relative error of what is evaluated here beside its sums: 2^-40 of a probability, raised to a
/// power below 3/2 or not, and some roundings of binary64.
constexpr double kEvaluation = 0x1p-39;

/// A factor and its constant are rounded, unless it is a power of two.
double factor_budget(const GradientPairs& pairs, double factor) {
  int exponent = 0;
  const bool exact = factor == 0 || std::abs(std::frexp(factor, &exponent)) == 0.5;
  return exact ? 0 : 2 * pairs.product_hat;
}

}  // namespace

RuleBudgets::RuleBudgets(const GradientPairs& pairs, const GradientRule& rule) {
  const double again = (rule.copies - 1) * pairs.addition_hat;
  const auto of = [&](double factor) {
    return factor == 1 ? 0 : factor_budget(pairs, factor) + again;
  };
  query = of(rule.factor_q);
  key = of(rule.factor_k);
  value = of(rule.factor_v);
  bias = of(rule.factor_bias);
  sinks = of(rule.factor_sinks);
}

RowOfPairs::RowOfPairs(const GradientPairs& pairs, const HeadPairs& head, const GradientRule& rule,
                       const RuleBudgets& budgets, std::int64_t i)
    : pairs_(pairs),
      head_(head),
      rule_(rule),
      budgets_(budgets),
      row_(head.rows[size(i)]),
      i_(i),
      upstream_(rule.ones_for_dout ? pairs.ones.data() : head.dout.data() + i * pairs.value_dim),
      budget_(row_.budget) {
  double D = row_.D, before = budget_.delta_before;
  if (rule.ones_for_dout_in_D) {
    D = row_.ones.D;
    before = row_.ones.delta_error;
    budget_.delta_radius = row_.ones.D_radius;
  }
  if (rule.negative_D) D = -D;
  if (rule.without_D) D = before = budget_.delta_radius = 0;
  double dlse = rule.without_dlse ? 0 : row_.dlse;
  if (rule.negative_dlse) dlse = -dlse;
  budget_.delta = D - dlse;
  budget_.delta_error = rounded_delta_error(budget_, budget_.delta, before);
  if (rule.ones_for_dout) budget_.dp_underflow = row_.ones.dp_underflow;
  if (rule.p_exponent != 1) {
    budget_.common *= std::max(1.0, rule.p_exponent);
    budget_.grow_common = std::exp(budget_.common);
  }
  if (budgets.query > 0) {
    after_query_ = std::expm1(budgets.query);
    budget_.grow_after_query *= 1 + after_query_;
  }
}

RowOfPairs::Product RowOfPairs::product(std::int64_t j, const PairOfHead& pair) const {
  if (!rule_.v_row && !rule_.ones_for_dout) {
    return {pair.dp, pair.abs_dp, budget_.dp_radius};
  }
  const std::int64_t from = rule_.v_row ? rule_.v_row(i_, j) : j;
  if (from < 0) return {0, 0, 0};
  Product dp{0, 0, 0};
  if (rule_.ones_for_dout) {
    dp = {pairs_.value_sum[size(from)], pairs_.value_abs_sum[size(from)], 0};
  } else {
    const double* v = pairs_.v.data() + from * pairs_.value_dim;
    for (std::int64_t c = 0; c < pairs_.value_dim; ++c) {
      const double term = upstream_[c] * v[c];
      dp.value += term;
      dp.absolute += std::abs(term);
    }
  }
  dp.radius = 0x1p-53 * static_cast<double>(pairs_.value_dim + 1) * dp.absolute;
  return dp;
}

/// The budget of p^a, if that of p is `budget`: errors of the exponent's argument are scaled with
/// it, another base rounds it twice more at most, and a cast may no longer be one near 1.
double RowOfPairs::raised_budget(double p, double budget) const {
  const double a = rule_.p_exponent;
  return std::max(1.0, a) * budget + pairs_.argument_growth * a * (std::abs(std::log(p)) + budget) +
         (p > 0.5 ? pairs_.cast_hat : 0.0);
}

void RowOfPairs::raise(const PairOfHead& pair, WrongPair& w) const {
  const auto raised = [&](double growth) {
    return std::expm1(raised_budget(pair.p, std::log1p(growth)));
  };
  w.x.p = std::pow(pair.p, rule_.p_exponent);
  const double lost = w.x.p < 0x1p-1000 ? 0x1p-1000 : 0;
  w.x.p += lost;
  w.x.grown = w.x.p * raised(pair.in_ds) + lost;
  w.grown_query = w.x.p * raised(pair.in_query) + lost;
  w.in_value = raised(pair.in_value) + (lost > 0 ? 1 : 0);
}

WrongPair RowOfPairs::pair(std::int64_t j, bool with_factor) const {
  const std::size_t cell = size(i_ * pairs_.keys + j);
  const PairOfHead& pair = head_.pairs[cell];
  WrongPair w;
  const Product dp = product(j, pair);
  const double rounding = 0x1p-52 * (std::abs(dp.value) + std::abs(budget_.delta));
  const double t = dp.value - budget_.delta;
  const double radius = dp.radius + budget_.delta_radius + rounding;
  double f = 1, f_radius = 0;
  w.x.f_error = 0;
  if (with_factor && !head_.derivatives.empty()) {
    f = head_.derivatives[cell].f;
    f_radius = 0x1p-50;  // the truth rounds f
    w.x.f_error = head_.derivatives[cell].error;
  }
  w.x.t = std::abs(t) + radius;
  w.x.f = std::abs(f);
  w.x.product_error =
      product_error(budget_, dp.value, dp.absolute) + budget_.dp_relative * dp.radius;
  w.x.lost = row_.lost_ds;
  if (rule_.p_exponent == 1) {
    w.x.p = pair.p;
    w.x.grown = pair.p * pair.in_ds;
    w.grown_query = pair.p * pair.in_query;
    w.in_value = pair.in_value;
  } else {
    raise(pair, w);
  }
  w.grown_query += (w.x.p + w.grown_query) * after_query_;
  w.ds = w.x.p * t * f;
  w.radius = w.x.p * (w.x.f * radius + w.x.t * (kEvaluation * w.x.f + f_radius));
  w.error = score_gradient_error(budget_, w.x);
  w.underflow = score_gradient_underflow(budget_, w.x);
  const double magnitude = gradient_of_score(w.x) + w.error + w.underflow;
  const double products = dp.absolute + w.x.product_error;
  w.unbounded = !row_.bounded ||
                !pairs_.limits.products_fit(products, budget_.delta, budget_.delta_error) ||
                !(magnitude * budget_.scale_or_one <= pairs_.limits.ds);
  return w;
}

Addend RowOfPairs::bias(std::int64_t j) const {
  const WrongPair w = pair(j, rule_.derivative_in_bias);
  if (w.unbounded) return {0, HUGE_VAL, 0};
  return {w.ds, w.error + w.radius, w.underflow};
}

Addend RowOfPairs::sink() const {
  if (!row_.bounded) return {0, HUGE_VAL, 0};
  SinkParts sink = row_.sink;
  if (rule_.without_p_sink) {
    sink.p = 1;
    sink.log_p = sink.lost = sink.probability = 0;
  } else if (rule_.p_exponent != 1 && sink.p > 0) {
    sink.probability = raised_budget(sink.p, sink.probability);
    sink.log_p *= rule_.p_exponent;
    sink.p = std::pow(sink.p, rule_.p_exponent);
  }
  const double delta = std::abs(budget_.delta) + budget_.delta_radius;
  const double error = sink_gradient_error(sink, delta, budget_.delta_error) - sink.underflow;
  return {-sink.p * budget_.delta,
          error + sink.p * (kEvaluation * delta + budget_.delta_radius) + 0x1p-980 * delta,
          sink.underflow};
}

}  // namespace ringproof::oracle
