// Budgets of recomputed and stored probabilities (probabilities.hpp).
#include "oracle/contract/probabilities.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

void fit_all(Probabilities& out, std::int64_t padded) {
  for (auto* array : {&out.in_ds, &out.in_dv, &out.lost_ds, &out.lost_dv}) {
    fit(*array, padded);
    std::fill_n(array->begin(), padded, 0.0);
  }
}

/// hat(u_P), or less for a probability near 1, which is a number of every format. (12), (28)
double cast_near_one(const Contract& c, double reach) {
  const double all = hat(c.p.u);
  int exponent = 0;
  const bool power_of_two = std::frexp(c.p.scale, &exponent) == 0.5;
  if (c.p.round != RoundMode::rn || !power_of_two || !(reach < std::log1p(c.p.u))) return all;
  return std::min(all, -std::log1p(-std::expm1(reach)));
}

/// What a scale of P that is no power of two rounds. (13)
double scale_rounding(const Contract& c) {
  int exponent = 0;
  const bool power_of_two = std::frexp(c.p.scale, &exponent) == 0.5;
  return power_of_two ? 0.0 : 2 * std::max(hat(c.softmax.u), hat(c.pv.u));
}

/// Underflow of the cast of a probability that is scaled before it, or not.
double cast_underflow(const Contract& c) { return c.p.eta * std::max(1.0, 1 / c.p.scale); }

}  // namespace

void ExactProbabilities::take(const RowKeys& keys, const RowTruth& truth) {
  fit(p, keys.padded);
  fit(log_p, keys.padded);
  std::copy_n(keys.p.begin(), keys.padded, p.begin());
  std::copy_n(keys.log_p.begin(), keys.padded, log_p.begin());
  lse = truth.lse.hi;
}

void ExactProbabilities::take_given(const RowKeys& keys, const RowTruth& truth,
                                    const RowGradients& gradients) {
  take(keys, truth);
  lse = gradients.lse_given;
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.count); ++k) {
    const bool sink = k == static_cast<std::size_t>(keys.visible);
    log_p[k] = keys.score[k] - lse;
    p[k] = sink ? gradients.p_sink : gradients.p[static_cast<std::size_t>(keys.index[k])];
  }
}

void recomputed_probabilities(const RowBudget& row, const ExactProbabilities& exact,
                              double lse_error, Probabilities& out) {
  const Contract& c = *row.contract;
  const RowKeys& keys = row.keys;
  const double us = row.softmax_hat, exp_hat = hat(c.softmax.exp_rel), L = std::fabs(exact.lse);
  const bool fused = c.softmax.arg == ExpArgument::fma_scaled;
  const double argument = std::expm1((c.softmax.arg == ExpArgument::sub_log2 ? 3 : 1) * us);
  const double scaled = scale_rounding(c);
  fit_all(out, keys.padded);
  // The product L log2(e) of a fused argument is common to the row.
  out.common = lse_error + (fused ? std::expm1(2 * us) * (L + lse_error) : 0.0);
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.count); ++k) {
    const double eps = keys.error[k] + 0x1p-52 * L;  // the truth rounds the L in use
    // A sink too: a kernel may have folded it into the units of the scores.
    const double temperature = row.temperature() * (std::fabs(keys.score[k]) + eps);
    const double distance = std::fabs(exact.log_p[k]);
    const double X =
        eps + temperature + argument * (distance + eps + temperature + out.common) + exp_hat;
    const double cast = cast_near_one(c, distance + X + out.common) + scaled;
    const double lost = c.softmax.exp_eta * std::exp(cast) + cast_underflow(c);
    out.in_ds[k] = c.backward.ds_from_cast ? X + cast : X;
    out.in_dv[k] = X + cast;
    out.lost_ds[k] = c.backward.ds_from_cast ? lost : c.softmax.exp_eta;
    out.lost_dv[k] = lost;
  }
}

void stored_probabilities(const RowBudget& row, const FormSums& form, Probabilities& out) {
  const Contract& c = *row.contract;
  const MergeBudget& budget = form.budget;
  KeyBudgetView view = budget.view(row.keys);
  view.common_lse = view.common;
  const LseSums sums = lse_sums(view);
  const double H = budget.denominator_underflow / row.W;
  const bool divided = form.denominator > 0;
  fit_all(out, row.keys.padded);
  out.common = divided ? log_ratio(sums, H) : HUGE_VAL;
  // Everything in A_j that belongs to the weight and not to the sum of values.
  const double of_sum = row.gamma_pv + hat(c.inputs.load_u_v);
  const double division = c.p.normalized == Tri::no ? row.division : 0.0;
  const double share = budget.underflow_growth / (row.W * form.denominator);
  const double of_exp = share * (row.blocks + row.R) * c.softmax.exp_eta;
  const double of_cast = std::max(c.p.normalized != Tri::no ? c.p.eta : 0.0,
                                  c.p.normalized != Tri::yes ? share * c.p.eta / c.p.scale : 0.0);
  const bool cast_in_ds = c.backward.ds_from_cast || c.p.u == 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.count); ++k) {
    const double A = view.numerator != nullptr ? view.numerator[k] : view.numerator_of_all;
    const double weight = A - of_sum + division, cast = row.keys.cast[k];
    const double X = view.common[k] + view.more + weight;
    const double lost = of_exp * std::exp(weight + cast) + of_cast;
    out.in_ds[k] = c.backward.ds_from_cast ? X + cast : X;
    out.in_dv[k] = X + cast;
    out.lost_ds[k] = cast_in_ds ? lost : of_exp * std::exp(weight);
    out.lost_dv[k] = lost;
  }
}

void join(Probabilities& all, const Probabilities& other, std::int64_t keys) {
  take_larger(all.common, other.common);
  const auto larger = [&](std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(keys); ++k) take_larger(a[k], b[k]);
  };
  larger(all.in_ds, other.in_ds);
  larger(all.in_dv, other.in_dv);
  larger(all.lost_ds, other.lost_ds);
  larger(all.lost_dv, other.lost_dv);
}

}  // namespace ringproof::oracle
