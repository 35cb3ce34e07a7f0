// T1 and T3 of one row (theorems.hpp).
#include "oracle/contract/theorems.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

double lse_from(const RowBudget& row, const MergeBudget& budget, double ratio, double log_sum) {
  const Contract& c = *row.contract;
  if (!(ratio < HUGE_VAL)) return HUGE_VAL;
  const double L = std::fabs(row.L);
  switch (budget.form) {
    case Merge::lse_sequential:
    case Merge::lse_sigmoid:
      return ratio;
    case Merge::lse_once:
      return ratio + std::expm1(hat(c.partials.lse_u)) * (L + ratio);
    default:
      break;
  }
  const double maximum =
      row.argument.temperature_grow * std::max(std::fabs(row.upper()), std::fabs(row.lower)) +
      row.lazy();
  return ratio + lse_tail(row, log_sum, c.lse.u)(maximum, L + ratio);
}

}  // namespace

double log_ratio(const LseSums& sums, double lost) {
  // A small budget keeps its digits in 1 - shrunk, a large one in shrunk.
  const double below = sums.below + lost, shrunk = sums.shrunk - lost;
  if (!(shrunk > 0)) return HUGE_VAL;
  const double fallen = below < 0.5 ? -std::log1p(-below) : -std::log(shrunk);
  return std::max(std::log1p(sums.above + lost), fallen);
}

double largest_magnitude(const RowBudget& row, const ColumnRange& range, std::int64_t column) {
  const auto c = static_cast<std::size_t>(column);
  return row.keys.visible == 0 ? 0.0 : std::max(range.largest[c], -range.smallest[c]);
}

double evaluation_underflow(const RowBudget& row, double largest_value) {
  return row.n * 0x1p-1021 * largest_value;
}

std::size_t row_forms(const Contract& contract, const Problem& problem, const RowTruth& truth,
                      RowBudget& row, std::vector<FormSums>& forms) {
  row_budget(contract, problem, truth, row);
  const auto& merges = contract.partials.merge;
  const std::size_t count = row.R > 1 ? merges.size() : 1;
  if (forms.size() < count) forms.resize(count);
  for (std::size_t f = 0; f < count; ++f) {
    merge_budget(row, merges[f], forms[f].budget);
    form_weights(row, forms[f]);
  }
  return count;
}

void form_weights(const RowBudget& row, FormSums& sums) {
  key_weights(sums.budget.view(row.keys), sums.weights);
  sums.denominator = sums.weights.shrunk_sum - sums.budget.denominator_underflow / row.W;
}

void finish_form(const RowBudget& row, const double* out, std::int64_t columns, FormSums& sums) {
  if (!row.keys.has_sink) return;  // its value is zero, so only its distance to o counts
  const double weight = sums.weights.common[static_cast<std::size_t>(row.keys.visible)];
  for (std::int64_t c = 0; c < columns; ++c) {
    sums.errors.common[static_cast<std::size_t>(c)] += weight * std::fabs(out[c]);
  }
}

double column_underflow(const MergeBudget& budget, const ColumnRange& range, std::int64_t column) {
  return budget.value_underflow * range.abs_sum[static_cast<std::size_t>(column)] +
         budget.value_underflow_constant;
}

double final_underflow(const RowBudget& row, const MergeBudget& budget, const ColumnRange& range,
                       std::int64_t column) {
  const auto c = static_cast<std::size_t>(column);
  double leak = 0;
  if (budget.leak > 0 && row.keys.visible > 0) {  // (20b)
    const double above = row.keys.has_sink ? std::max(range.largest[c], 0.0) : range.largest[c];
    const double below = row.keys.has_sink ? std::min(range.smallest[c], 0.0) : range.smallest[c];
    const double growth = 2 * std::expm1(budget.leak_growth);
    leak = budget.leak * (above - below + growth * largest_magnitude(row, range, column));
  }
  const double G = column_underflow(budget, range, column);
  const double reach = largest_magnitude(row, range, column) + G;
  const double lost = reach > 0 ? budget.lost_weight * reach : 0.0;  // (20c)
  return budget.final_underflow * range.abs_sum[c] + budget.final_underflow_constant + leak + lost;
}

double column_bound(const RowBudget& row, const FormSums& sums, const ColumnRange& range,
                    double out, std::int64_t column) {
  const MergeBudget& budget = sums.budget;
  const auto c = static_cast<std::size_t>(column);
  const double D = sums.denominator;
  if (!(D > 0)) return HUGE_VAL;
  const double o = std::fabs(out), largest = largest_magnitude(row, range, column);
  const double G = column_underflow(budget, range, column);
  const double H = budget.denominator_underflow, Pt = budget.partial_underflow;
  const double lost = evaluation_underflow(row, largest);
  const double weighted = (sums.errors.common[c] + sums.errors.numerator[c] +
                           sums.weights.denominator_sum * o + (G + H * o) / row.W + Pt + lost) /
                          D;  // (21)
  double distance = row.keys.has_sink ? o : 0.0;
  if (row.keys.visible > 0) {
    distance = std::max({distance, range.largest[c] - out, out - range.smallest[c]});
  }
  const double grown = budget.grow_denominator * (1 + H / (row.W * D));
  const double convex = distance + grown * budget.errors_max * largest +
                        ((G + H * largest) / row.W + Pt + lost) / D;  // (22)
  const double relative = budget.relative_division * o;
  return budget.grow_division * std::min(weighted, convex) + relative +
         final_underflow(row, budget, range, column);
}

double lse_bound(const RowBudget& row, const MergeBudget& budget) {
  const double H = budget.denominator_underflow / row.W;
  const double ratio = log_ratio(budget.sums, H);
  return lse_from(row, budget, ratio, budget.lse_total + ratio);
}

double largest_lse_bound(const RowBudget& row, const MergeBudget& budget) {
  // Twice, for a row that lacks up to half of its weight.
  const double H = 2 * budget.denominator_underflow / row.W, largest = budget.sums.largest;
  const double ratio =
      log_ratio({std::expm1(largest), -std::expm1(-largest), std::exp(-largest), largest}, H);
  return lse_from(row, budget, ratio, budget.lse_total + ratio);
}

}  // namespace ringproof::oracle
