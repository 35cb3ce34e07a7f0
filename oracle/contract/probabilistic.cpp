#include "oracle/contract/probabilistic.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/cast_classes.hpp"
#include "oracle/contract/probable_sums.hpp"
#include "oracle/contract/theorems.hpp"

namespace ringproof::oracle {

namespace {

/// Precondition (c): so many standard deviations of a drift refute the model of a column.
constexpr double kRefuted = 4;
/// Covers the rounding of this evaluation, as in bound.cpp.
constexpr double kInflation = 1 + 0x1p-30;

struct Scratch {
  RowBudget row;
  FormSums form;
  CastClasses classes;
  RowBound exact_casts, exact_sums;
  std::vector<double> weight, error, y;  // [visible]
  std::vector<double> grown, addends;    // [visible]
};

/// p e^C expm1(cast) e^{max A} e^{tau_d} / D: how much a relative error of one cast moves out.
void cast_weights(const FormSums& form, std::vector<double>& weight) {
  const double growth = std::exp(form.budget.numerator_max + form.budget.division);
  for (std::size_t j = 0; j < weight.size(); ++j) {
    const double moved = form.weights.cast[j] * growth / form.denominator;
    weight[j] = std::max(weight[j], moved);
  }
}

/// What both sums of a row add to a bound in which they are exact. (39a)
struct ProbableSums {
  bool listed = false;
  double numerator = 0;            // per sum of `grown` |v|
  double denominator = 0;          // per |o|
  double smaller_denominator = 1;  // D of exact sums over D

  /// `grown`: p e^C e^{tau_d} / D of every key.
  ProbableSums(const Contract& c, const RowBudget& row, const FormSums& form, double lambda,
               std::vector<double>& grown, std::vector<double>& addends) {
    if (!lists_sums(c)) return;
    const RowKeys& keys = row.keys;
    grown.resize(static_cast<std::size_t>(keys.visible));
    addends.assign(keys.p.begin(), keys.p.begin() + keys.visible);
    if (mostly_equal(addends)) return;
    const double growth = std::exp(form.budget.division) / form.denominator;
    double all = 0;
    for (std::size_t j = 0; j < grown.size(); ++j) {
      grown[j] = (keys.p[j] + form.weights.common[j]) * growth;
      all += grown[j];
    }
    listed = true;
    smaller_denominator = form.budget.grow_denominator;
    numerator = probable_sum(lambda, std::max(c.pv.u, 0x1p-53), form.budget.numerator_max,
                             path_roundings(c.pv.acc, row.terms, row.sum_rescales));
    Terms of_weights = row.terms;  // a sink is one more of them, added by a step of its own
    of_weights.count += keys.has_sink;
    of_weights.cuts += keys.has_sink;
    denominator = all * probable_sum(lambda, std::max(c.l.u, 0x1p-53), form.budget.denominator_max,
                                     path_roundings(c.l.acc, of_weights, row.sum_rescales));
  }
};

}  // namespace

double azuma_factor(double failure, double elements) {
  return std::sqrt(2 * std::log(2 * std::max(elements, 1.0) / failure));
}

std::string no_probabilistic_level(const Contract& c) {
  if (c.p.u > 0 && c.p.round != RoundMode::rn) return "P is not cast by rounding to nearest";
  if (c.p.u > 0 && c.p.sum_from_cast) return "the denominator adds up the cast P";
  if (c.out.round != RoundMode::rn) return "the output is not rounded to nearest";
  return {};
}

std::string no_gradient_level(const Contract& c) {
  const Contract::Backward& b = c.backward;
  if (std::string reason = no_probabilistic_level(c); !reason.empty()) return reason;
  if (c.p.u == 0 && b.ds_u == 0) return "neither P nor dS is cast";
  const bool isolated = b.mode == BackwardMode::isolated;
  if (!isolated && b.p_from != ProbabilityFrom::recompute) {
    return "a P that is stored has the same casts in dS, D and dV";
  }
  if (b.ds_from_cast) return "dS may be formed from the cast P, whose casts are in D as well";
  if (!isolated && b.D_from != DFrom::out) return "D may be a sum over products with P";
  return {};
}

Contract without_casts(const Contract& contract) {
  Contract exact = contract;
  exact.p.u = 0;
  exact.out.dtype = DType::f64;
  return exact;
}

Contract without_gradient_casts(const Contract& contract) {
  Contract exact = without_casts(contract);
  exact.backward.ds_u = 0;
  return exact;
}

void bound_row_probabilistic(const Contract& contract, const Contract& exact_casts,
                             const Problem& problem, const RowTruth& truth, const double* values,
                             std::int64_t stride, const RowBound& bound, double lambda,
                             ProbabilisticBound& result) {
  thread_local Scratch scratch;
  Scratch& s = scratch;
  const auto columns = truth.out.size();
  bound_row(exact_casts, problem, truth, values, stride, false, s.exact_casts);
  result = ProbabilisticBound{.out = bound.out, .remainder = s.exact_casts.functional};
  row_budget(contract, problem, truth, s.row);
  const RowKeys& keys = s.row.keys;
  const auto visible = static_cast<std::size_t>(keys.visible);
  s.weight.assign(visible, 0.0);
  double more = 0;
  const auto& merges = contract.partials.merge;
  for (std::size_t f = 0; f < (s.row.R > 1 ? merges.size() : 1); ++f) {
    merge_budget(s.row, merges[f], s.form.budget);
    form_weights(s.row, s.form);
    if (!(s.form.denominator > 0)) return;  // no bound to improve
    cast_weights(s.form, s.weight);
    more = std::max(more, s.form.budget.all.more);
  }
  s.classes.find(keys, more, truth.max_score);
  s.error.resize(visible);
  for (std::size_t j = 0; j < visible; ++j) {
    s.error[j] = cast_error(std::exp(keys.score[j] - truth.max_score), contract.p.u);
  }
  const ProbableSums sums(contract, s.row, s.form, lambda, s.grown, s.addends);
  if (sums.listed) {
    bound_row(without_sums(exact_casts), problem, truth, values, stride, false, s.exact_sums);
  }
  const auto value_of = [&](std::size_t j) { return values + keys.index[j] * stride; };
  const double u2 = contract.p.u * contract.p.u;
  s.y.assign(visible, 0.0);
  for (std::size_t c = 0; c < columns; ++c) {
    double drift = 0;
    const double sign = truth.out[c].hi < 0 ? -1 : 1;
    for (std::size_t j = 0; j < visible; ++j) {
      const double v = value_of(j)[c];
      drift += keys.p[j] * v * s.error[j];
      s.y[j] += sign * v;
    }
    const double scale =
        u2 * s.classes.variance([&](std::size_t j) { return keys.p[j] * value_of(j)[c]; });
    if (std::fabs(drift) > kRefuted * std::sqrt(scale)) continue;  // (c) for this column
    const double variance =
        s.classes.variance([&](std::size_t j) { return s.weight[j] * value_of(j)[c]; });
    const double casts = lambda * std::sqrt(variance);
    result.out[c] = std::min(result.out[c], kInflation * (s.exact_casts.out[c] + casts));
    if (!sums.listed) continue;
    double magnitude = 0;
    for (std::size_t j = 0; j < visible; ++j) {
      s.addends[j] = keys.p[j] * value_of(j)[c];
      magnitude += s.grown[j] * std::fabs(value_of(j)[c]);
    }
    if (mostly_equal(s.addends)) continue;
    const double accumulated =
        sums.numerator * magnitude + sums.denominator * std::fabs(truth.out[c].hi);
    result.out[c] = std::min(
        result.out[c],
        kInflation * (sums.smaller_denominator * s.exact_sums.out[c] + casts + accumulated));
  }
  for (std::size_t j = 0; j < visible; ++j) result.drift += keys.p[j] * s.y[j] * s.error[j];
  result.drift_scale = u2 * s.classes.variance([&](std::size_t j) { return keys.p[j] * s.y[j]; });
  result.variance =
      kInflation * s.classes.variance([&](std::size_t j) { return s.weight[j] * s.y[j]; });
}

}  // namespace ringproof::oracle
