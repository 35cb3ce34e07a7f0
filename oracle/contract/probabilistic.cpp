#include "oracle/contract/probabilistic.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "oracle/contract/probable_sums.hpp"
#include "oracle/contract/theorems.hpp"

namespace ringproof::oracle {

namespace {

/// Precondition (c): so many standard deviations of a drift refute the model.
constexpr double kRefuted = 4;
/// Covers the rounding of this evaluation, as in bound.cpp.
constexpr double kInflation = 1 + 0x1p-30;

/// RN(w) / w - 1 for the cast's significand.
double cast_error(double w, double u) {
  if (!(w > 0) || u == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(w, &exponent);  // in [1/2, 1)
  const double steps = 1 / u;                        // 2^digits
  return std::nearbyint(fraction * steps) / steps / fraction - 1;
}

/// Keys whose weights may have the same significand share their cast's error: class[j]. (39)
class CastClasses {
 public:
  void find(const RowKeys& keys, double more, double max_score) {
    const auto count = static_cast<std::size_t>(keys.visible);
    phase_.resize(count);
    order_.resize(count);
    class_.resize(count);
    for (std::size_t j = 0; j < count; ++j) {
      const double octaves = (keys.score[j] - max_score) / std::numbers::ln2;
      phase_[j] = octaves - std::floor(octaves);
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return phase_[a] < phase_[b]; });
    const auto near = [&](std::size_t a, std::size_t b, double distance) {
      return distance <= 2 * (keys.common[a] + keys.common[b] + 2 * more);
    };
    classes_ = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t j = order_[n];
      if (n > 0 && !near(j, order_[n - 1], phase_[j] - phase_[order_[n - 1]])) ++classes_;
      class_[j] = classes_;
    }
    if (count == 0) return;
    ++classes_;
    // Just below a power of two and just above it: the phases meet at their ends.
    const std::size_t first = order_.front(), last = order_.back();
    if (classes_ > 1 && near(first, last, phase_[first] + 1 - phase_[last])) {
      for (std::size_t& one : class_) one = one == classes_ - 1 ? 0 : one;
    }
  }

  /// Sum over the classes of the squared sum of |h_j|.
  template <class Coefficient>
  double variance(const Coefficient& h) {
    sums_.assign(classes_, 0.0);
    for (std::size_t j = 0; j < class_.size(); ++j) sums_[class_[j]] += std::fabs(h(j));
    double total = 0;
    for (const double sum : sums_) total += sum * sum;
    return total;
  }

 private:
  std::vector<double> phase_, sums_;
  std::vector<std::size_t> order_, class_;
  std::size_t classes_ = 0;
};

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
    denominator = all * probable_sum(lambda, std::max(c.l.u, 0x1p-53), form.budget.denominator_max,
                                     path_roundings(c.l.acc, row.terms, row.sum_rescales));
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

Contract without_casts(const Contract& contract) {
  Contract exact = contract;
  exact.p.u = 0;
  exact.out.dtype = DType::f64;
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
  result.refuted = std::fabs(result.drift) > kRefuted * std::sqrt(result.drift_scale);
}

}  // namespace ringproof::oracle
