// T1R, (23) (ring_bound.hpp).
#include "oracle/contract/ring_bound.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

// A weight above this has all its digits.
constexpr double kSmallestWeight = 0x1p-900;

double log_of_sum(double log_a, double log_b) {
  const double larger = std::max(log_a, log_b);
  return larger + std::log1p(std::exp(std::min(log_a, log_b) - larger));
}

/// ln W of one step whose weights underflow.
double log_of_tiny_weight(const RowBudget& row, const RingSums& sums, std::int64_t step) {
  double sum = -HUGE_VAL;
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.visible); ++k) {
    if (sums.step_of_key[k] == step) {
      sum = sum == -HUGE_VAL ? row.keys.log_p[k] : log_of_sum(sum, row.keys.log_p[k]);
    }
  }
  return sum;
}

/// The factors that one merge puts on the running sum and on the partial it adds. (23)
struct MergeFactors {
  double partial;   // s
  double running;   // de
  double of_exp;    // the part of al1, al2 that no weight changes
  double of_ratio;  // expm1(hat u_sm), or 0
  double slack;

  MergeFactors(const RowBudget& row, const MergeBudget& budget) {
    const Contract& c = *row.contract;
    const bool lse = budget.form == Merge::lse_sequential;
    const double us = row.softmax_hat;
    partial = (lse ? row.division : 0.0) + hat(c.partials.o_u);
    running = (lse ? us : hat(c.pv.u)) + hat(c.partials.run_u);
    of_exp = lse ? row.exp_hat + us : hat(c.pv.u);
    of_ratio = lse ? std::expm1(us) : 0.0;
    slack = 2 * budget.sums.largest;
  }
  /// al1 or al2 for a part that holds e^-log_share of the weight merged so far.
  double merge(double log_share) const { return of_exp + of_ratio * (log_share + slack); }
};

}  // namespace

void number_steps(std::int64_t visible, RingSums& sums) {
  auto& step = sums.step_of_key;
  std::vector<std::int32_t>& held = sums.held;
  held.assign(step.begin(), step.begin() + visible);
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  for (std::int64_t k = 0; k < visible; ++k) {
    const auto at = std::lower_bound(held.begin(), held.end(), step[static_cast<std::size_t>(k)]);
    step[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(at - held.begin());
  }
  sums.steps = static_cast<std::int64_t>(held.size());
}

void ring_sums(const RowBudget& row, const FormSums& form, const ValueRows& rows, RingSums& sums) {
  const std::int64_t steps = sums.steps;
  const std::int64_t size = steps * rows.columns;
  for (auto* array : {&sums.signed_sum, &sums.common, &sums.numerator}) {
    fit(*array, size);
    std::fill_n(array->begin(), size, 0.0);
  }
  fit(sums.weight, steps);
  fit(sums.log_weight, steps);
  std::fill_n(sums.weight.begin(), steps, 0.0);
  sums.keys.assign(static_cast<std::size_t>(steps), 0);
  numerator_weights(form.budget.view(row.keys), form.budget.numerator_before, sums.key_weights);
  const auto& step = sums.step_of_key;
  for (std::int64_t first = 0, last = 0; first < rows.visible; first = last) {
    const std::int32_t here = step[static_cast<std::size_t>(first)];
    const auto r = static_cast<std::size_t>(here);
    for (; last < rows.visible && step[static_cast<std::size_t>(last)] == here; ++last) {
      sums.weight[r] += row.keys.p[static_cast<std::size_t>(last)];
    }
    sums.keys[r] += last - first;
    const auto place = static_cast<std::int64_t>(r) * rows.columns;
    add_signed_sums(rows, row.keys.p.data(), form.weights.common.data(), sums.key_weights.data(),
                    first, last,
                    {sums.signed_sum.data() + place, sums.common.data() + place,
                     sums.numerator.data() + place});
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto r = static_cast<std::size_t>(t);
    if (sums.keys[r] == 0) continue;
    sums.log_weight[r] = sums.weight[r] >= kSmallestWeight ? std::log(sums.weight[r])
                                                           : log_of_tiny_weight(row, sums, t);
  }
}

double ring_column_bound(const RowBudget& row, const FormSums& form, const ColumnRange& range,
                         const RingSums& sums, double out, std::int64_t columns,
                         std::int64_t column) {
  const MergeBudget& budget = form.budget;
  const bool covered = budget.form == Merge::unnormalized || budget.form == Merge::lse_sequential;
  if (!covered || !(form.denominator > 0)) return HUGE_VAL;
  const MergeFactors factors(row, budget);
  double E = 0, X = 0, k = 0;  // E_t, X_t, k_t
  double before = 0;           // ln W_{<t}
  bool started = false;
  for (std::int64_t t = 0; t < sums.steps; ++t) {
    const auto step = static_cast<std::size_t>(t);
    if (sums.keys[step] == 0) continue;  // an empty rank changes nothing
    const auto place = static_cast<std::size_t>(t * columns + column);
    const double added = sums.log_weight[step];
    const double N = std::fabs(sums.signed_sum[place]) + sums.common[place];
    const double of_partial = std::exp(factors.partial) * sums.numerator[place] +
                              std::expm1(factors.partial) * N;  // Eh_t
    if (!started) {
      E = of_partial;
    } else {
      const double total = log_of_sum(before, added);
      const double al1 = factors.merge(total - before), al2 = factors.merge(total - added);
      const double merged = std::exp(al1) * E + std::expm1(al1) * (std::fabs(X) + k) +
                            std::exp(al2) * of_partial + std::expm1(al2) * N;
      const double running = std::fabs(X + sums.signed_sum[place]) + k + sums.common[place];
      E = std::exp(factors.running) * merged + std::expm1(factors.running) * running;
    }
    X += sums.signed_sum[place];
    k += sums.common[place];
    before = started ? log_of_sum(before, added) : added;
    started = true;
  }
  if (std::isnan(E)) return HUGE_VAL;  // a budget beyond binary64 on a rank without weight
  const auto c = static_cast<std::size_t>(column);
  const double o = std::fabs(out);
  const double G = column_underflow(budget, range, column);
  const double e0 = (form.errors.common[c] + E + o * form.weights.denominator_sum +
                     (G + budget.denominator_underflow * o) / row.W + budget.partial_underflow) /
                    form.denominator;
  return budget.grow_division * e0 + budget.relative_division * o +
         final_underflow(row, budget, range, column);
}

}  // namespace ringproof::oracle
