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
  const auto count = static_cast<std::size_t>(row.keys.count);
  for (auto* array :
       {&out.common, &out.common_lse, &out.numerator, &out.denominator, &out.shared}) {
    fit(*array, row.keys.padded);
    std::fill_n(array->begin(), row.keys.padded, 0.0);
  }
  out.rescales = row.rescales + (out.form == Merge::unnormalized ? row.R - 1 : 0.0);
  const double exps = (1 + out.rescales) * row.exp_hat;
  for (std::size_t j = 0; j < count; ++j) {
    out.common[j] = row.keys.common[j] + exps;
    out.common_lse[j] = row.keys.common_lse[j] + exps;
  }
  // Padding takes part in nothing, but where all keys share a budget it shares it too.
  std::fill_n(out.numerator.begin(), row.keys.padded, row.numerator);
  std::fill_n(out.denominator.begin(), row.keys.padded, row.denominator);
  out.uniform = true;
  out.numerator_before = row.numerator;
}

/// Unnormalised sums rescaled and added, or carried from rank to rank. (17)
void merge_unnormalized(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const double merges = row.R - 1;
  const double numerator = merges * (2 * hat(c.pv.u) + hat(c.partials.run_u)) + hat(c.partials.o_u);
  const double denominator = 2 * merges * hat(c.l.u);
  for (std::size_t j = 0; j < static_cast<std::size_t>(row.keys.count); ++j) {
    out.numerator[j] += numerator;
    out.denominator[j] += denominator;
  }
}

/// What (18)-(20a) share.
struct LseMerge {
  double us, logaddexp, running;  // hat(u_sm), dl, k_L
  double up;                      // ln sum p e^{CL + B}
  LseTail tail;

  LseMerge(const RowBudget& row, const MergeBudget& budget, const LseSums& sums)
      // lmax of a partial, which may hold keys without weight.
      : tail(row, budget.lse_total + sums.largest, row.contract->partials.lse_u) {
    const Contract& c = *row.contract;
    us = row.softmax_hat;
    logaddexp =
        1.01 * (0.28 * us + 0.5 * row.exp_hat + 0.6932 * hat(c.lse.log_rel) + c.lse.log_abs);
    running = std::expm1(us + hat(c.partials.lse_u));
    up = std::log1p(sums.above);
  }
};

/// LSE of any intermediate result that holds key j, and its tail. (18)
struct RunningLse {
  double reach, tail, bound;  // La_j, z_j, Lam_j
};

RunningLse running_lse(const RowBudget& row, const LseMerge& m, double budget, double score,
                       double merges) {
  RunningLse result{};
  result.reach = std::max(std::fabs(row.L), std::fabs(score)) + budget + m.up;
  result.tail = m.tail(result.reach, result.reach);
  const double left = 1 - merges * m.running;
  result.bound = left > 0 ? (result.reach + result.tail + merges * m.logaddexp) / left : HUGE_VAL;
  return result;
}

/// Normalised results (O, L) merged one after the other, or all at once. (18), (19), (20)
void merge_weighted(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const bool sequential = out.form == Merge::lse_sequential;
  const LseMerge m(row, out, lse_sums(out.view(row.keys)));
  const double merges = sequential ? row.R - 1 : 1;  // nm
  const double difference = std::expm1(m.us);
  const double exp_hat = row.exp_hat;
  const double numerator = row.division + hat(c.partials.o_u) +
                           (sequential ? (row.R - 1) * (exp_hat + 2 * m.us + hat(c.partials.run_u))
                                       : exp_hat + row.R * m.us);
  out.uniform = false;
  const double total = 1.01 * (hat(c.lse.log_rel) * std::log(row.R) + c.lse.log_abs);
  for (std::size_t j = 0; j < static_cast<std::size_t>(row.keys.count); ++j) {
    const double budget = out.common_lse[j] + out.denominator[j];
    const RunningLse lse = running_lse(row, m, budget, row.keys.score[j], merges);
    const double of_merge = merges * (m.logaddexp + m.running * lse.bound);
    const double span = row.L - row.keys.score[j] + 2 * (budget + m.up + lse.tail + of_merge);
    out.shared[j] = lse.tail;
    out.common[j] += lse.tail;
    out.common_lse[j] += lse.tail;
    out.numerator[j] += numerator + difference * span;
    out.denominator[j] += sequential ? of_merge  // (19)
                                     : exp_hat + (row.R - 1) * m.us + difference * span + total +
                                           difference * lse.bound;  // (20)
  }
}

/// out -= sigmoid(L_r - L) (out - O_r): a convex combination exactly, so that the errors of the
/// weights are shared by numerator and denominator. (20a), and the factors of (20b)
void merge_sigmoid(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const LseMerge m(row, out, lse_sums(out.view(row.keys)));
  const double merges = row.R - 1;
  double reach = std::fabs(row.L), smallest = HUGE_VAL;
  for (std::size_t j = 0; j < static_cast<std::size_t>(row.keys.count); ++j) {
    const double budget = out.common_lse[j] + out.denominator[j];
    reach = std::max(reach, std::fabs(row.keys.score[j]) + budget);
    smallest = std::min(smallest, row.keys.score[j] - budget);
  }
  reach += m.up;
  const double tail = m.tail(reach, reach);
  const double span = std::max(0.0, row.L + m.up - smallest) + 2 * tail;  // X0
  const double log_error = std::expm1(hat(c.lse.log_rel) + 2 * m.us);
  const double of_span = std::expm1(m.us) + 1.01 * log_error;  // k_x
  const double logsigmoid = 1.01 * (0.6932 * log_error + 0.5 * row.exp_hat + c.lse.log_abs);
  const double left = 1 - merges * (m.running + 2 * of_span);
  const double step =  // h
      left > 0 ? (logsigmoid + m.running * (reach + tail) + of_span * span) / left : HUGE_VAL;
  const double full_span = span + 2 * merges * step;  // X
  const double shared = tail + std::expm1(m.us) * full_span + merges * step;
  const double stores = merges * (m.us + hat(c.partials.run_u));
  const double numerator = row.division + hat(c.partials.o_u) + stores;
  for (std::size_t j = 0; j < static_cast<std::size_t>(row.keys.count); ++j) {
    out.shared[j] = shared;
    out.common[j] += shared;
    out.common_lse[j] += shared;
    out.numerator[j] += numerator;
  }
  const double sigmoid = hat(c.partials.sigmoid_rel) + 2 * m.us;
  out.leak = std::expm1(sigmoid) * std::exp(stores) + row.R * c.softmax.exp_eta;
  out.leak_growth = merges * 2 * sigmoid;
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
      kappa * (blocks * row.n * c.softmax.exp_eta + (row.n + row.blocks + 2 * row.R) * c.l.eta);
  const double sum_growth = std::exp(row.gamma_pv);
  out.final_underflow = normalizing ? sum_growth * c.p.eta : 0;
  out.final_underflow_constant =
      c.finish.roundings * c.pv.eta + (normalizing ? sum_growth * 2 * row.n * c.pv.eta : 0);
}

/// Maxima over the keys, and what follows from them: kappa of (16) and Pt of (16a).
void finish_budgets(const RowBudget& row, MergeBudget& out) {
  const Contract& c = *row.contract;
  const RowKeys& keys = row.keys;
  const double log_n = std::log(row.n);
  double reach_max = -HUGE_VAL, partial_max = -HUGE_VAL;
  out.numerator_max = out.denominator_max = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys.count); ++j) {
    const double A = out.numerator[j], B = out.denominator[j];
    reach_max =
        std::max(reach_max, keys.score[j] + keys.error[j] - row.max_score() + A + out.shared[j]);
    partial_max = std::max(
        partial_max, std::min(0.0, keys.score[j] + log_n - row.L) + A + B + out.common_lse[j]);
    out.numerator_max = std::max(out.numerator_max, A + keys.cast[j]);
    out.denominator_max = std::max(out.denominator_max, B);
  }
  underflows(row, reach_max, out);
  out.partial_underflow =
      row.R > 1 ? (2 * row.R - 1) * (c.partials.eta + 2 * c.pv.eta) * std::exp(partial_max) : 0.0;
  out.leak_growth += out.leak > 0 ? out.numerator_max + out.denominator_max : 0.0;
}

}  // namespace

KeyBudgetView MergeBudget::view(const RowKeys& keys) const {
  return {keys.padded,      keys.log_p.data(), keys.p.data(),      common.data(), common_lse.data(),
          keys.cast.data(), numerator.data(),  denominator.data(), uniform};
}

LseTail::LseTail(const RowBudget& row, double log_sum, double lse_u) {
  const Contract::Lse& lse = row.contract->lse;
  const double us = row.softmax_hat;
  const double store = us + hat(lse_u);
  const double logarithm =
      std::expm1(hat(lse.log_rel) + 2 * us) * log_sum + std::exp(2 * us) * lse.log_abs;
  constant_ = std::exp(store) * logarithm;
  of_maximum_ = std::exp(store) * std::expm1(lse.max_roundings * us);
  of_lse_ = std::expm1(store);
}

void merge_budget(const RowBudget& row, Merge form, MergeBudget& out) {
  out.form = row.R > 1 ? form : Merge::none;
  out.division = row.contract->p.normalized == Tri::yes || by_lse(out.form) ? 0.0 : row.division;
  out.leak = out.leak_growth = 0;
  const double M = row.max_score();
  out.lse_total = std::log(row.n) + row.lazy() + std::max(row.upper() - M, M - row.lower) +
                  row.temperature() * std::max(std::fabs(row.upper()), std::fabs(row.lower));
  before_merging(row, out);
  if (out.form == Merge::unnormalized) merge_unnormalized(row, out);
  if (out.form == Merge::lse_sequential || out.form == Merge::lse_once) merge_weighted(row, out);
  if (out.form == Merge::lse_sigmoid) merge_sigmoid(row, out);
  finish_budgets(row, out);
  out.sums = lse_sums(out.view(row.keys));
}

double growth_without_keys(const RowBudget& row, const MergeBudget& budget, double growth) {
  if (!by_lse(budget.form)) return 0;
  const Contract& c = *row.contract;
  const double us = row.softmax_hat, running = std::expm1(us + hat(c.partials.lse_u));
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
