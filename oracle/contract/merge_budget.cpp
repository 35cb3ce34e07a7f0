// Budgets of merging (merge_budget.hpp).
#include "oracle/contract/merge_budget.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

bool by_lse(Merge form) {
  return form == Merge::lse_sequential || form == Merge::lse_once || form == Merge::lse_sigmoid;
}

/// Every budget before merging: (10)(11) with their terms in n_al, (13)(14).
void before_merging(const RowBudget& row, MergeBudget& out) {
  out.uniform = true;
  out.rescales = row.rescales + (out.form == Merge::unnormalized ? row.R - 1 : 0.0);
  out.all = {(1 + out.rescales) * row.exp_hat, row.numerator, row.denominator};
  out.shared = 0;
  out.numerator_before = row.numerator;
}

/// Unnormalised sums rescaled and added, or carried from rank to rank. (17)
void merge_unnormalized(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const double merges = row.R - 1;
  out.all.numerator += merges * (2 * hat(c.pv.u) + hat(c.partials.run_u)) + hat(c.partials.o_u);
  out.all.denominator += 2 * merges * hat(c.l.u);
}

/// eta_P / S_P where the denominator may add up the cast P, else 0.
double cast_underflow_of_sum(const Contract& c) {
  return c.p.sum_from_cast && c.p.normalized != Tri::yes ? c.p.eta / c.p.scale : 0;
}

/// -ln(1 - h'), h' the share of its denominator that a partial may lose to underflow. The key at
/// its maximum enters as exp(0), or as the exponential of what the rounded maximum of a fused
/// argument leaves. (18)
double log_lost_of_partial(const RowBudget& row, const MergeBudget& budget) {
  const Contract& c = *row.contract;
  const double blocks = row.blocks + row.R;
  const double each = blocks * c.softmax.exp_eta + cast_underflow_of_sum(c);
  const double farthest = std::max(std::fabs(row.upper()), std::fabs(row.extremes.lowest));
  const double of_maximum =
      row.argument.maximum_lse * row.argument.temperature_grow * (farthest + row.lazy());
  const double of_cast = c.p.sum_from_cast ? hat(c.p.u) : 0;
  const double lost =
      (row.n * each + (row.n + blocks + row.R) * c.l.eta) *
      std::exp(of_maximum + of_cast + 2 * (budget.all.more + budget.all.denominator));
  return lost < 1 ? -std::log1p(-lost) : HUGE_VAL;
}

/// tail for a partial, which may hold keys without weight. (18)
LseTail partial_tail(const RowBudget& row, const MergeBudget& budget, const LseSums& sums,
                     double log_lost) {
  return lse_tail(row, budget.lse_total + sums.largest + log_lost, row.contract->partials.lse_u);
}

/// k_L of (18)
double running_lse(const RowBudget& row) {
  return std::expm1(row.softmax_hat + hat(row.contract->partials.lse_u));
}

/// Normalised results (O, L) merged one after the other, or all at once. (18), (19), (20)
void merge_by_weight(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const double us = row.softmax_hat, exp_hat = row.exp_hat;
  const LseSums sums = lse_sums(out.view(row.keys));
  WeightedMerge merge;
  merge.sequential = out.form == Merge::lse_sequential;
  const double log_lost = log_lost_of_partial(row, out);
  merge.tail = partial_tail(row, out, sums, log_lost);
  merge.L = row.L;
  merge.up = std::log1p(sums.above) + log_lost;
  merge.merges = merge.sequential ? row.R - 1 : 1;
  merge.logaddexp =
      1.01 * (0.28 * us + 0.5 * exp_hat + 0.6932 * hat(c.lse.log_rel) + c.lse.log_abs);
  merge.running = running_lse(row);
  merge.difference = std::expm1(us);
  merge.numerator = row.division + hat(c.partials.o_u) +
                    (merge.sequential ? (row.R - 1) * (exp_hat + 2 * us + hat(c.partials.run_u))
                                      : exp_hat + row.R * us);
  merge.denominator =
      exp_hat + (row.R - 1) * us + 1.01 * (hat(c.lse.log_rel) * std::log(row.R) + c.lse.log_abs);
  merge_weighted(merge, row.keys, out.all, out.of_key);
  out.uniform = false;
}

/// out -= sigmoid(L_r - L) (out - O_r): a convex combination exactly, so that the errors of the
/// weights are shared by numerator and denominator. (20a), and the factors of (20b)
void merge_sigmoid(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const double us = row.softmax_hat, merges = row.R - 1, running = running_lse(row);
  const LseSums sums = lse_sums(out.view(row.keys));
  const LseExtremes extremes = lse_extremes(row.keys, out.all.more + out.all.denominator);
  const double log_lost = log_lost_of_partial(row, out);
  const double up = std::log1p(sums.above) + log_lost;
  const double reach = std::max(std::fabs(row.L), extremes.largest) + up;        // La
  const double tail = partial_tail(row, out, sums, log_lost)(reach, reach);      // Z
  const double span = std::max(0.0, row.L + up - extremes.smallest) + 2 * tail;  // X0
  const double log_error = std::expm1(hat(c.lse.log_rel) + 2 * us);
  const double of_span = std::expm1(us) + 1.01 * log_error;  // k_x
  const double logsigmoid = 1.01 * (0.6932 * log_error + 0.5 * row.exp_hat + c.lse.log_abs);
  const double left = 1 - merges * (running + 2 * of_span);
  const double step =  // h
      left > 0 ? (logsigmoid + running * (reach + tail) + of_span * span) / left : HUGE_VAL;
  const double full_span = span + 2 * merges * step;  // X
  const double stores = merges * (us + hat(c.partials.run_u));
  out.shared = tail + std::expm1(us) * full_span + merges * step;
  out.all.more += out.shared;
  out.all.numerator += row.division + hat(c.partials.o_u) + stores;
  const double sigmoid = hat(c.partials.sigmoid_rel) + 2 * us;
  out.leak = std::expm1(sigmoid) * std::exp(stores) + row.R * c.softmax.exp_eta;
  out.leak_growth = merges * 2 * sigmoid;
}

/// What the cast takes from a denominator that adds up the cast P. Rounding to nearest or to zero
/// moves no number by more than itself, so a key loses no more than it has. (16)
double lost_in_casts(const RowBudget& row, const MergeBudget& budget) {
  const Contract& c = *row.contract;
  if (row.equal_scores && c.p.scale >= 2 * c.p.eta) return 0;  // the scale is a number of the type
  const double each = budget.underflow_growth * cast_underflow_of_sum(c);
  if (each == 0 || c.p.round == RoundMode::faithful) return row.n * each;
  const KeyBudgetView view = budget.view(row.keys);
  double lost = 0;
  for (std::int64_t k = 0; k < row.keys.count; ++k) {
    const auto j = static_cast<std::size_t>(k);
    const double B = view.denominator != nullptr ? view.denominator[j] : view.denominator_of_all;
    const double grown = std::max(view.common[j], view.common_lse[j]) + view.more + B;
    lost += std::min(each, row.W * view.p[j] * std::exp(grown));
  }
  return lost;
}

/// kappa, G, H and G2. (16)
void underflows(const RowBudget& row, double reach_max, MergeBudget& out) {
  const Contract& c = *row.contract;
  const bool online = c.p.normalized != Tri::yes, normalizing = c.p.normalized != Tri::no;
  const double blocks = row.blocks + row.R;
  out.underflow_growth = std::exp(out.rescales * row.exp_hat + reach_max);
  const double kappa = out.underflow_growth;
  out.value_underflow = kappa * ((online ? c.p.eta / c.p.scale : 0) + blocks * c.softmax.exp_eta);
  const double rounds = 2 * row.n + row.blocks + 2 * row.R;
  out.value_underflow_constant = online ? kappa * rounds * c.pv.eta : 0;
  out.denominator_underflow =
      kappa * (blocks * row.n * c.softmax.exp_eta + (row.n + row.blocks + 2 * row.R) * c.l.eta) +
      lost_in_casts(row, out);
  const double sum_growth = std::exp(row.gamma_pv);
  out.final_underflow = normalizing ? sum_growth * c.p.eta : 0;
  out.final_underflow_constant =
      c.finish.roundings * c.pv.eta + (normalizing ? sum_growth * 2 * row.n * c.pv.eta : 0);
}

/// A weight exp(L_r - L) that underflows loses up to eta_e of a whole normalised partial, which is
/// not measured in units of W as the losses of (16) are. (20c)
double lost_weights(const RowBudget& row, const MergeBudget& budget) {
  const Contract& c = *row.contract;
  const double eta = c.softmax.exp_eta, stores = row.division + hat(c.partials.o_u);
  if (budget.form == Merge::lse_once) {
    const double of_partial = row.numerator + row.cast_max + row.denominator + stores;
    return row.R * eta * std::exp(of_partial + row.R * row.softmax_hat);
  }
  if (budget.form != Merge::lse_sequential) return 0;
  const LostShares lost = lost_shares(row.keys, budget.of_key);
  return 2 * (row.R - 1) * (eta * std::exp(2 * lost.heavy) + row.n * std::exp(lost.light));
}

/// Maxima over the keys, and what follows from them: kappa of (16) and Pt of (16a).
void finish_budgets(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const double log_share = std::log(row.n) - row.L;
  BudgetMaxima maxima;
  if (out.uniform) {
    const double A = out.all.numerator, B = out.all.denominator;
    maxima.reach = above_maximum(row.argument, row.upper(), 0) + std::max(A, B) + out.shared;
    maxima.numerator = A + row.cast_max;
    maxima.denominator = B;
    if (row.R > 1) maxima.partial = partial_maximum(row.keys, out.all.more, log_share) + A + B;
  } else {
    maxima = budget_maxima(row.keys, row.argument, out.of_key, log_share);
  }
  maxima.reach += common_shift(row.argument);
  out.numerator_max = maxima.numerator;
  out.denominator_max = maxima.denominator;
  out.grow_denominator = std::exp(maxima.denominator);
  out.errors_max = std::expm1(maxima.numerator) + std::expm1(maxima.denominator);
  underflows(row, maxima.reach, out);
  out.partial_underflow =
      row.R > 1 ? (2 * row.R - 1) * (c.partials.eta + 2 * c.pv.eta) * std::exp(maxima.partial)
                : 0.0;
  out.leak_growth += out.leak > 0 ? out.numerator_max + out.denominator_max : 0.0;
  out.lost_weight = lost_weights(row, out);
}

}  // namespace

KeyBudgetView MergeBudget::view(const RowKeys& keys) const {
  KeyBudgetView view{};
  view.padded = keys.padded;
  view.log_p = keys.log_p.data();
  view.p = keys.p.data();
  view.cast = keys.cast.data();
  if (uniform) {
    view.common = keys.common.data();
    view.common_lse = keys.common_lse.data();
    view.more = all.more;
    view.numerator_of_all = all.numerator;
    view.denominator_of_all = all.denominator;
  } else {
    view.common = of_key.common.data();
    view.common_lse = of_key.common_lse.data();
    view.numerator = of_key.numerator.data();
    view.denominator = of_key.denominator.data();
  }
  return view;
}

LseTail lse_tail(const RowBudget& row, double log_sum, double lse_u) {
  const Contract::Lse& lse = row.contract->lse;
  const double us = row.softmax_hat;
  const double store = us + hat(lse_u);
  const double logarithm =
      std::expm1(hat(lse.log_rel) + 2 * us) * log_sum + std::exp(2 * us) * lse.log_abs;
  return {.constant = std::exp(store) * logarithm,
          .of_maximum = std::exp(store) * std::expm1(lse.max_roundings * us),
          .of_lse = std::expm1(store)};
}

void merge_budget(const RowBudget& row, Merge form, MergeBudget& out) {
  out.form = row.R > 1 ? form : Merge::none;
  out.division = row.contract->p.normalized == Tri::yes || by_lse(out.form) ? 0.0 : row.division;
  out.grow_division = std::exp(out.division);
  out.relative_division = std::expm1(out.division);
  out.leak = out.leak_growth = 0;
  const double M = row.max_score();
  out.lse_total = std::log(row.n) + row.lazy() + std::max(row.upper() - M, M - row.lower) +
                  row.temperature() * std::max(std::fabs(row.upper()), std::fabs(row.lower));
  before_merging(row, out);
  if (out.form == Merge::unnormalized) merge_unnormalized(row, out);
  if (out.form == Merge::lse_sequential || out.form == Merge::lse_once) merge_by_weight(row, out);
  if (out.form == Merge::lse_sigmoid) merge_sigmoid(row, out);
  finish_budgets(row, out);
  out.sums = lse_sums(out.view(row.keys));
}

double growth_without_keys(const RowBudget& row, const MergeBudget& budget, double growth) {
  if (!by_lse(budget.form)) return 0;
  const Contract& c = *row.contract;
  const double us = row.softmax_hat, running = running_lse(row);
  const double merges = budget.form == Merge::lse_sequential ? row.R - 1 : 1;
  const double left = 1 - merges * running;
  if (left <= 0) return HUGE_VAL;
  const double store = us + hat(c.partials.lse_u);
  const double of_tail = std::exp(store) * std::expm1(c.lse.max_roundings * us) + std::expm1(store);
  // |L| and ln sum p e^{CL+B} each move by `growth` at most; everything else falls.
  const double reach = 2 * growth;
  const double tail = of_tail * reach;
  const double bound = (reach + tail) / left;
  const double span = growth + 2 * (growth + tail + merges * running * bound);
  return tail + 2 * std::expm1(us) * span + merges * running * bound + std::expm1(us) * bound;
}

}  // namespace ringproof::oracle
