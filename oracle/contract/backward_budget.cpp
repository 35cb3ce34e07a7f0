// Budgets of one row of the backward pass (backward_budget.hpp).
#include "oracle/contract/backward_budget.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// Covers the rounding of the evaluation of (25).
constexpr double kInflation = 1 + 0x1p-30;

/// Lam of (25) over the merges of the contract: the LSE that the forward pass hands over.
double stored_lse_error(const BackwardScratch& s) {
  double largest = 0;
  for (std::size_t f = 0; f < s.form_count; ++f) {
    take_larger(largest, lse_bound(s.row, s.forms[f].budget));
  }
  return largest * kInflation;
}

}  // namespace

bool isolated(const Contract& c) { return c.backward.mode == BackwardMode::isolated; }
bool may_recompute(const Contract& c) {
  return isolated(c) || c.backward.p_from != ProbabilityFrom::stored;
}
bool may_store(const Contract& c) {
  return !isolated(c) && c.backward.p_from != ProbabilityFrom::recompute;
}

void product_budget(const Contract& c, const Problem& problem, const BackwardHead& head,
                    const RowGradients& row, GradientBudget& out) {
  const Contract::Backward& b = c.backward;
  const double Gd = gamma(b.dp_acc, Terms::contiguous(problem.value_dim)) + hat(c.inputs.load_u_v) +
                    hat(c.inputs.load_u_do);
  const double Sd = sum_of_hats(b.dp_store), us = hat(c.softmax.u);
  double factors = 2 * static_cast<double>(problem.value_dim);
  for (std::size_t k = 0; k < row.dout.size(); ++k) {  // a factor read as zero loses the other one
    factors += std::fabs(row.dout[k]) + std::max(head.range.largest[k], -head.range.smallest[k]);
  }
  out.dp_dot = std::exp(Sd) * std::expm1(Gd);
  out.dp_relative = std::expm1(Sd);
  out.dp_underflow = std::exp(Sd) * (std::exp(Gd) * factors * b.dp_eta +
                                     static_cast<double>(b.dp_store.size()) * b.dp_store_eta);
  out.dp_radius = row.dp_radius;
  out.cap = problem.spec.softcap;
  out.cap_square = std::exp(4 * us);
  out.cap_relative = std::expm1(4 * us);
  out.cap_difference = std::expm1(us) + 0x1p-50;  // the truth rounds f
  out.cap_underflow = 2 * std::exp(us) * b.dp_eta;
}

void score_gradient_budget(const Contract& c, const Problem& problem, const RowBudget& row,
                           GradientSum& query, GradientBudget& out) {
  const Contract::Backward& b = c.backward;
  const double us = row.softmax_hat;
  out.product = 2 * us + hat(b.ds_u) + (out.cap > 0 ? us : 0.0);
  out.grow_product = std::exp(out.product);
  out.underflow = b.dp_eta;
  out.cast_underflow = b.ds_eta * (1 + static_cast<double>(b.grad_store.size()));
  out.scale_underflow = b.grad_scale_roundings * std::max(b.dp_eta, b.grad_eta);
  query = query_gradient_sum(c, problem, row.terms);
  out.after_query = query.budget + scale_budget(c) + hat(c.inputs.load_u);
  out.grow_after_query = std::exp(out.after_query);
  out.scale = scale_of(problem);
  out.scale_or_one = std::max(1.0, out.scale);
}

double used_probabilities(const Contract& c, const BackwardHead& head,
                          const RowGradients& gradients, BackwardScratch& s) {
  const std::int64_t count = s.row.keys.count;
  const bool of_products = !isolated(c) && c.backward.D_from != DFrom::out;
  bool first = true;
  double error = 0;
  const auto joined = [&](double from_products) {
    if (of_products) take_larger(error, from_products);
    if (!first) join(s.used, s.other, count);
    if (first) std::swap(s.used, s.other);
    first = false;
  };
  if (may_recompute(c)) {
    const double lse_error = isolated(c) ? 0.0 : stored_lse_error(s);
    recomputed_probabilities(s.row, s.exact, lse_error, s.other);
    joined(of_products
               ? delta_error_from_recomputed(s.row, s.exact, s.other, s.keys, gradients.D, s.delta)
               : 0.0);
  }
  for (std::size_t f = 0; f < s.form_count && may_store(c); ++f) {
    stored_probabilities(s.row, s.forms[f], s.other);
    joined(of_products ? delta_error_from_stored(s.row, s.forms[f], s.exact, s.other, s.keys,
                                                 gradients.D, s.delta)
                       : 0.0);
  }
  if (isolated(c)) return delta_error_from_given(s.row, gradients, s.out.data());
  for (std::size_t f = 0; f < s.form_count && c.backward.D_from != DFrom::p_dp; ++f) {
    take_larger(error, delta_error_from_out(s.row, s.forms[f], head.range, s.keys, gradients,
                                            s.out.data(), s.delta));
  }
  return error;
}

SinkParts sink_parts(const Contract& c, const Problem& problem, const GradientBudget& budget,
                     const BackwardScratch& s) {
  const auto k = static_cast<std::size_t>(s.row.keys.visible);
  const GradientSum sum = sink_gradient_sum(c, problem);
  // A stored probability of the sink shares the casts of the other keys.
  const double casts =
      may_store(c) ? hat(c.backward.ds_u) + sum_of_hats(c.backward.grad_store) : 0.0;
  const double rows = static_cast<double>(problem.batches * problem.queries);
  const double underflow =
      2 * c.backward.grad_eta + (casts > 0 ? c.backward.ds_eta : 0.0) + sum.underflow / rows;
  return {.p = s.exact.p[k],
          .log_p = s.exact.log_p[k],
          .lost = s.used.lost_ds[k],
          .probability = s.used.in_ds[k] + budget.common,
          .after = s.row.softmax_hat + casts + sum.budget,
          .underflow = std::exp(std::min(sum.budget + casts, 700.0)) * underflow};
}

void delta_budget(const Contract& c, const RowGradients& row, double error, GradientBudget& out) {
  const double us = hat(c.softmax.u);
  out.delta = row.D - row.dlse;
  out.delta_radius = row.D_radius;
  out.delta_before = error + row.D_radius + row.dp_radius;
  out.delta_growth = std::expm1(us);
  out.delta_underflow = c.backward.D_eta;
  out.delta_error = rounded_delta_error(out, out.delta, out.delta_before);
}

}  // namespace ringproof::oracle
