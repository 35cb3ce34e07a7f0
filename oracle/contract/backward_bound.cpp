// The bounds of one row's gradients: probabilities, D, then the sums over its keys
// (backward_bound.hpp).
#include "oracle/contract/backward_bound.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/contract/assumptions.hpp"
#include "oracle/contract/backward_budget.hpp"
#include "oracle/contract/gradient_parts.hpp"

namespace ringproof::oracle {

namespace {

/// Covers the rounding of this evaluation: terms of one sign, at most 2^20 of them.
constexpr double kInflation = 1 + 0x1p-30;
/// Beyond this a budget saturates and the bound is infinite.
constexpr double kLargest = 0x1p800;

/// H1 of the backward pass: no product and no dS leaves its format.
std::string failed_gradient_assumption(const GradientLimits& limits, const GradientBudget& budget,
                                       const BackwardScratch& s) {
  double dp = 0, ds = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.row.keys.visible); ++k) {
    dp = std::max(dp, s.keys.abs_dp[k] + s.keys.product_error[k]);
    ds = std::max(ds, s.keys.query_magnitude[k]);
  }
  if (!limits.products_fit(dp, budget.delta, budget.delta_error)) return "H1: dP may overflow";
  if (!(ds * budget.scale_or_one <= limits.ds)) return "H1: dS may overflow";
  return {};
}

/// (32). No bound where the sum, or a store of it, may overflow, H1.
void bound_queries(const BackwardHead& head, const Problem& problem, const RowTruth& truth,
                   const RowGradients& gradients, const GradientBudget& budget,
                   const GradientSum& query, double largest, BackwardScratch& s,
                   RowGradientBound& bound) {
  const std::int64_t D = problem.head_dim;
  const RowKeys& keys = s.row.keys;
  for (auto* array : {&s.signed_sum, &s.weighted, &s.extent}) {
    fit(*array, D + kPadding);
    std::fill_n(array->begin(), D, 0.0);
  }
  const ValueRows rows{head.keys + truth.keys.first * head.keys_stride, head.keys_stride,
                       keys.index.data(), keys.visible, D};
  add_signed_sums(rows, s.keys.signed_weight.data(), s.keys.query_weight.data(),
                  s.keys.signed_weight.data(), 0, keys.visible,
                  {s.signed_sum.data(), s.weighted.data(), s.extent.data()});
  double magnitude = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.visible); ++k) {
    magnitude += s.keys.query_magnitude[k];
  }
  const double grow = budget.scale_or_one * budget.grow_after_query;
  const double lost = grow * (query.underflow + s.row.contract->backward.grad_eta * magnitude);
  const bool fits = grow * magnitude * head.largest_key <= largest;
  const double of_delta = budget.scale * budget.grow_common * budget.delta_error;
  for (std::size_t c = 0; c < static_cast<std::size_t>(D); ++c) {
    const double kbar = std::fabs(s.signed_sum[c]) + 0x1p-30 * s.extent[c];
    const double dq = std::fabs(gradients.dq[c].hi) + gradients.dq[c].radius;
    bound.dq[c] =
        fits ? s.weighted[c] + of_delta * kbar + std::expm1(budget.common) * dq + lost : HUGE_VAL;
  }
}

/// p t, stored or added up where the bias is broadcast.
void bound_bias(const Contract& c, const Problem& problem, const GradientBudget& budget,
                double largest, const BackwardScratch& s, RowGradientBound& bound) {
  const GradientSum sum = bias_gradient_sum(c, problem);
  const double after = sum.budget + sum_of_hats(c.backward.grad_store);
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.row.keys.visible); ++k) {
    const double value = s.exact.p[k] * (std::fabs(s.keys.dp[k] - budget.delta) + budget.dp_radius +
                                         budget.delta_radius);
    const double summed = sum.budget > 0 ? 2 * c.backward.grad_eta + sum.underflow : 0.0;
    const double error = std::exp(after) * (s.keys.bias[k] + summed) + std::expm1(after) * value;
    bound.dbias[static_cast<std::size_t>(s.row.keys.index[k])] =
        value + error <= largest ? error : HUGE_VAL;  // H1
  }
}

/// Nothing is known of this row.
void leave_unbounded(const RowTruth& truth, const RowGradients& gradients, BackwardScratch& s,
                     RowGradientBound& bound, GradientBoundSums* sums) {
  std::fill(bound.dq.begin(), bound.dq.end(), HUGE_VAL);
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.row.keys.visible); ++k) {
    if (!bound.dbias.empty()) bound.dbias[static_cast<std::size_t>(s.row.keys.index[k])] = HUGE_VAL;
    s.keys.of_query[k] = s.keys.of_upstream[k] = HUGE_VAL;
  }
  if (truth.has_sink) bound.dsink = HUGE_VAL;
  if (sums != nullptr) {
    sums->add({truth.keys.first, s.row.keys.visible, s.row.keys.index.data(),
               s.keys.of_query.data(), s.keys.of_upstream.data(), s.keys.query_magnitude.data(),
               s.keys.upstream_magnitude.data(), gradients.q.data(), gradients.dout.data()});
  }
}

void inflate(RowGradientBound& bound, const RowTruth& truth) {
  const auto close = [&](double& value) {
    if (std::isnan(value)) {
      throw std::runtime_error("oracle error: a gradient's bound is not a number (batch " +
                               std::to_string(truth.b) + ", head " + std::to_string(truth.h) +
                               ", query " + std::to_string(truth.i) + ")");
    }
    value = value < kLargest ? value * kInflation : HUGE_VAL;
  };
  std::for_each(bound.dq.begin(), bound.dq.end(), close);
  std::for_each(bound.dbias.begin(), bound.dbias.end(), close);
  close(bound.dsink);
}

void clear(RowGradientParts& parts) {
  parts.bounded = true;  // a row that sees nothing has bounds 0
  parts.index.clear();
  parts.lost_ds = parts.lost_dv = parts.query_underflow = 0;
  parts.budget = {};
  parts.sink = {};
  parts.ones = {};
}

void clear(RowMagnitudes& magnitudes, std::int64_t keys) {
  magnitudes.after_query = magnitudes.delta_norm = magnitudes.delta_drift = 0;
  for (auto* array : {&magnitudes.score_gradient, &magnitudes.probability, &magnitudes.weight}) {
    array->assign(static_cast<std::size_t>(keys), 0.0);
  }
}

/// The coefficients of (41).
void fill_magnitudes(const BackwardHead& head, const RowTruth& truth, const RowGradients& gradients,
                     const GradientBudget& budget, BackwardScratch& s, RowMagnitudes& out) {
  const Contract& c = *s.row.contract;
  const RowKeys& keys = s.row.keys;
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.visible); ++k) {
    const auto j = static_cast<std::size_t>(keys.index[k]);
    out.score_gradient[j] = s.keys.query_magnitude[k];
    out.probability[j] = s.exact.p[k] + s.keys.grown[k] + s.used.lost_ds[k];
    out.weight[j] = out.probability[j] * (s.keys.f[k] + s.keys.f_error[k]);
  }
  out.after_query = std::expm1(budget.after_query);
  if (isolated(c)) return;
  for (std::size_t f = 0; f < s.form_count; ++f) {
    s.classes.find(keys, s.forms[f].budget.all.more, truth.max_score);
    take_larger(out.delta_norm, delta_cast_norm(s.row, s.forms[f], head.range, s.classes, s.keys,
                                                gradients, s.out.data(), s.delta));
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.visible); ++k) {
    const double weight = std::exp(keys.score[k] - truth.max_score);
    out.delta_drift += s.exact.p[k] * s.keys.dp[k] * cast_error(weight, c.p.u);
  }
}

/// What the row is made of: the outputs and probabilities in use, and its visible keys.
void take_row(const Contract& contract, const Problem& problem, const GivenForward& given,
              const RowTruth& truth, const RowGradients& gradients, BackwardScratch& s) {
  const auto columns = static_cast<std::size_t>(problem.value_dim);
  fit(s.out, problem.value_dim + kPadding);
  for (std::size_t c = 0; c < columns; ++c) {
    s.out[c] = given.isolated()
                   ? given.out.at(truth.b, truth.h, truth.i, static_cast<std::int64_t>(c))
                   : truth.out[c].hi;
  }
  if (isolated(contract)) {
    s.exact.take_given(s.row.keys, truth, gradients);
  } else {
    s.exact.take(s.row.keys, truth);
  }
  s.keys.gather(s.row.keys, gradients);
}

}  // namespace

BackwardHead::BackwardHead(const Problem& problem, const double* k, std::int64_t k_stride,
                           const double* v, std::int64_t v_stride)
    : keys(k), keys_stride(k_stride), values(v), values_stride(v_stride) {
  const auto columns = static_cast<std::size_t>(problem.value_dim);
  range.sum.assign(columns + kPadding, 0);
  range.abs_sum.assign(columns + kPadding, 0);
  range.largest.assign(columns + kPadding, 0);
  range.smallest.assign(columns + kPadding, 0);
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double x = values[j * values_stride + static_cast<std::int64_t>(c)];
      range.abs_sum[c] += std::fabs(x);
      range.largest[c] = std::max(range.largest[c], x);
      range.smallest[c] = std::min(range.smallest[c], x);
    }
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      largest_key = std::max(largest_key, std::fabs(keys[j * keys_stride + d]));
    }
  }
}

void bound_row_backward(const Contract& contract, const Problem& problem, const GivenForward& given,
                        const BackwardHead& head, const RowTruth& truth,
                        const RowGradients& gradients, RowGradientBound& bound,
                        GradientBoundSums* sums, RowMagnitudes* magnitudes,
                        RowGradientParts* parts) {
  thread_local BackwardScratch scratch;
  BackwardScratch& s = scratch;
  bound.not_applicable =
      truth.not_applicable.empty() ? gradients.not_applicable : truth.not_applicable;
  bound.dq.assign(static_cast<std::size_t>(problem.head_dim), 0.0);
  bound.dbias.assign(problem.bias ? static_cast<std::size_t>(truth.keys.size()) : 0, 0.0);
  bound.dsink = 0;
  if (magnitudes != nullptr) clear(*magnitudes, truth.keys.size());
  if (parts != nullptr) clear(*parts);
  if (!bound.not_applicable.empty() || truth.empty()) return;

  s.form_count = row_forms(contract, problem, truth, s.row, s.forms);
  bound.not_applicable = failed_assumption(s.row, {s.forms.data(), s.form_count}, problem, truth,
                                           head.range, problem.value_dim);
  if (!bound.not_applicable.empty()) return;
  take_row(contract, problem, given, truth, gradients, s);
  GradientBudget budget;
  GradientSum query;
  product_budget(contract, problem, head, gradients, budget);
  gradient_errors(budget, s.row.keys, s.keys);
  score_gradient_budget(contract, problem, s.row, query, budget);
  delta_budget(contract, gradients, used_probabilities(contract, head, gradients, s), budget);
  budget.common = s.used.common;
  budget.grow_common = std::exp(budget.common);
  if (parts != nullptr) {
    parts->index.assign(s.row.keys.index.begin(), s.row.keys.index.begin() + s.row.keys.visible);
  }
  if (!(budget.grow_common < kLargest) || !(budget.delta_error < kLargest)) {
    if (parts != nullptr) parts->bounded = false;
    return leave_unbounded(truth, gradients, s, bound, sums);
  }
  const GradientShape* shape = sums != nullptr    ? &sums->shape()
                               : parts != nullptr ? parts->shape
                                                  : nullptr;
  KeyShares shares{};
  if (shape != nullptr) {
    shares = {shape->relative_query() + truth.keys.first,
              shape->relative_upstream() + truth.keys.first,
              shape->budget_upstream() + truth.keys.first};
  }
  gradient_weights(budget, s.row.keys, s.exact, s.used, shape != nullptr ? &shares : nullptr,
                   s.keys);
  const GradientLimits limits = gradient_limits(contract);
  bound.not_applicable = failed_gradient_assumption(limits, budget, s);
  if (!bound.not_applicable.empty()) return;
  bound_queries(head, problem, truth, gradients, budget, query, limits.sum, s, bound);
  if (truth.has_sink) {
    bound.dsink =
        sink_gradient_error(sink_parts(contract, problem, budget, s),
                            std::fabs(budget.delta) + gradients.D_radius, budget.delta_error);
  }
  if (problem.bias) bound_bias(contract, problem, budget, limits.sum, s, bound);
  inflate(bound, truth);
  if (magnitudes != nullptr) fill_magnitudes(head, truth, gradients, budget, s, *magnitudes);
  if (sums != nullptr) {
    sums->add({truth.keys.first, s.row.keys.visible, s.row.keys.index.data(),
               s.keys.of_query.data(), s.keys.of_upstream.data(), s.keys.query_magnitude.data(),
               s.keys.upstream_magnitude.data(), gradients.q.data(), gradients.dout.data()});
  }
  if (parts != nullptr) {
    hand_out_parts(contract, problem, head, truth, gradients, budget, s, *parts);
  }
}

}  // namespace ringproof::oracle
