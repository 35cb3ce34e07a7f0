// T1F, (26) (functional.hpp).
#include "oracle/contract/functional.hpp"

#include <cmath>

#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

FunctionalSums functional_sums(const RowBudget& row, const FormSums& form, const ColumnRange& range,
                               const VirtualColumn& column, const double* g, const double* out,
                               std::int64_t columns) {
  const KeyWeights& weights = form.weights;
  FunctionalSums sums;
  for (std::int64_t c = 0; c < columns; ++c) {
    const double weight = std::fabs(g[c]);
    sums.y += g[c] * out[c];
    sums.magnitude += std::fabs(g[c] * out[c]);
    sums.weight += weight;
    sums.underflow += weight * final_underflow(row, form.budget, range, c);
    sums.largest += weight * largest_magnitude(row, range, c);
  }
  for (std::size_t j = 0; j < static_cast<std::size_t>(row.keys.visible); ++j) {
    const double y_j = column.y[j], ay_j = column.abs_y[j];
    sums.error += weights.common[j] * std::fabs(y_j - sums.y) + weights.cast[j] * std::fabs(y_j) +
                  weights.beyond_cast[j] * ay_j;
    sums.absolute += (weights.common[j] + weights.numerator[j]) * ay_j;
    sums.abs_sum += ay_j;
  }
  if (row.keys.has_sink) {
    sums.error += weights.common[static_cast<std::size_t>(row.keys.visible)] * std::fabs(sums.y);
  }
  const double lost = evaluation_underflow(row, sums.largest);
  sums.error += lost;
  sums.absolute += lost;
  return sums;
}

LeftOut left_out(const RowBudget& row, const FormSums& form, double weight) {
  LeftOut result;
  result.weight = weight;
  const double growth =
      growth_without_keys(row, form.budget, -std::log1p(-weight));  // 0 unless by LSE
  result.factor = std::exp(2 * growth);
  result.extra = 4 * std::expm1(growth) * std::exp(growth) * (1 + form.weights.common_sum);
  result.denominator = form.denominator + std::expm1(-2 * growth) - weight;
  return result;
}

namespace {

AfterDivision after_division(const RowBudget& row) {
  const OutputRounding rounding = output_rounding(row.contract->out);
  return {hat(rounding.u), rounding.eta};
}

/// What underflows of the sums may amount to in (26).
struct LostInSums {
  double of_values, of_denominator, of_columns;

  LostInSums(const RowBudget& row, const MergeBudget& budget, const FunctionalSums& sums, double D)
      : of_values(budget.value_underflow * sums.abs_sum / (row.W * D)),
        of_denominator(budget.denominator_underflow / (row.W * D)),
        of_columns(budget.value_underflow_constant / (row.W * D) + budget.partial_underflow / D) {}
};

/// S_O of (26). What the division and the output rounding act on holds the underflows as well.
double computed_magnitude(const FormSums& form, const FunctionalSums& sums, const LeftOut& left,
                          const LostInSums& lost, double magnitude) {
  const KeyWeights& weights = form.weights;
  const double extra = left.extra * (sums.largest + magnitude);
  const double absolute =
      sums.absolute + (weights.common_sum + weights.denominator_sum) * magnitude;
  const double underflow = left.factor * (lost.of_values + lost.of_denominator * magnitude +
                                          sums.weight * lost.of_columns);
  return magnitude + (left.factor * absolute + extra) / left.denominator + underflow;
}

double functional_error(const RowBudget& row, const FormSums& form, const FunctionalSums& sums,
                        const LeftOut& left, double y, double magnitude,
                        const AfterDivision& after) {
  const double D = left.denominator;
  if (!(D > 0)) return HUGE_VAL;
  const MergeBudget& budget = form.budget;
  const KeyWeights& weights = form.weights;
  const double extra = left.extra * (sums.largest + magnitude);
  const double error = sums.error + weights.common_sum * std::fabs(y - sums.y) +
                       weights.denominator_sum * std::fabs(y);
  const LostInSums lost(row, budget, sums, D);
  const double S_O = computed_magnitude(form, sums, left, lost, magnitude);
  const double U =
      lost.of_values + lost.of_denominator * std::fabs(y) + sums.weight * lost.of_columns;
  return (left.factor * error + extra) / D + std::expm1(budget.division + after.budget) * S_O +
         left.factor * (U + std::exp(after.budget) * sums.underflow) +
         sums.weight * after.underflow;
}

}  // namespace

double functional_bound(const RowBudget& row, const FormSums& form, const FunctionalSums& sums,
                        const AfterDivision& after) {
  const LeftOut nothing{.denominator = form.denominator};
  return functional_error(row, form, sums, nothing, sums.y, sums.magnitude, after);
}

double functional_magnitude(const RowBudget& row, const FormSums& form,
                            const FunctionalSums& sums) {
  const double D = form.denominator;
  if (!(D > 0)) return HUGE_VAL;
  const LeftOut nothing{.denominator = D};
  return computed_magnitude(form, sums, nothing, LostInSums(row, form.budget, sums, D),
                            sums.magnitude);
}

double functional_bound(const RowBudget& row, const FormSums& form, const FunctionalSums& sums) {
  return functional_bound(row, form, sums, after_division(row));
}

double functional_bound_without(const RowBudget& row, const FormSums& form,
                                const FunctionalSums& sums, const LeftOut& left, double y,
                                double magnitude) {
  return functional_error(row, form, sums, left, y, magnitude, after_division(row));
}

}  // namespace ringproof::oracle
