// ED (delta_error.hpp).
#include "oracle/contract/delta_error.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/functional.hpp"
#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

namespace {

/// What the products and sums of dO.o lose to underflow; a factor read as zero loses the other one.
double dot_underflow(const Contract& c, const RowGradients& row, const double* out, double gamma) {
  double factors = 0;
  for (std::size_t k = 0; k < row.dout.size(); ++k) {
    factors += 2 + std::fabs(row.dout[k]) + std::fabs(out[k]);
  }
  return std::exp(gamma) * factors * c.backward.D_eta;
}

/// Gamma_D(dv), and dO rounded when it is loaded.
double dot_budget(const Contract& c, const RowGradients& row) {
  const auto columns = static_cast<std::int64_t>(row.dout.size());
  return gamma(c.backward.D_acc, Terms::contiguous(columns)) + hat(c.inputs.load_u_do);
}

double sum_budget(const RowBudget& row) { return gamma(row.contract->backward.D_acc, row.terms); }

/// sum p expm1(X + extra) |dP|; X may be null.
double weighted_growth(const RowBudget& row, const ExactProbabilities& exact,
                       const double* exponents, double extra, const GradientKeys& keys,
                       DeltaScratch& s) {
  fit(s.exponent, row.keys.padded);
  fit(s.grown, row.keys.padded);
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.padded); ++k) {
    s.exponent[k] = exponents[k] + extra;
  }
  grown_weights(exact, s.exponent.data(), row.keys.padded, s.grown.data());
  double sum = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.visible); ++k) {
    sum += s.grown[k] * std::fabs(keys.dp[k]);
  }
  return sum;
}

/// rest(Lam'): the errors of dP weighted with the computed probabilities, and underflow. (27a)
double rest(const RowBudget& row, const ExactProbabilities& exact, const Probabilities& used,
            const GradientKeys& keys, DeltaScratch& s) {
  fit(s.exponent, row.keys.padded);
  fit(s.grown, row.keys.padded);
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.padded); ++k) {
    s.exponent[k] = used.in_ds[k] + used.common;
  }
  grown_weights(exact, s.exponent.data(), row.keys.padded, s.grown.data());
  double sum = 0, underflows = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.visible); ++k) {
    const double lost = used.lost_ds[k], dp = std::fabs(keys.dp[k]), error = keys.product_error[k];
    sum += (exact.p[k] + s.grown[k] + lost) * error + lost * dp;
    underflows += 2 + dp + error;
  }
  return std::exp(sum_budget(row)) * (sum + underflows * row.contract->backward.D_eta);
}

/// What (26) needs for g = dO: the virtual column is dP.
FunctionalSums sums_of_products(const RowBudget& row, const FormSums& form,
                                const ColumnRange& range, const GradientKeys& keys,
                                const RowGradients& gradients, const double* out, DeltaScratch& s) {
  s.column.y.assign(keys.dp.begin(), keys.dp.begin() + row.keys.visible);
  s.column.abs_y.assign(keys.abs_dp.begin(), keys.abs_dp.begin() + row.keys.visible);
  const auto columns = static_cast<std::int64_t>(gradients.dout.size());
  return functional_sums(row, form, range, s.column, gradients.dout.data(), out, columns);
}

}  // namespace

double delta_error_from_out(const RowBudget& row, const FormSums& form, const ColumnRange& range,
                            const GradientKeys& keys, const RowGradients& gradients,
                            const double* out, DeltaScratch& s) {
  const Contract& c = *row.contract;
  if (row.keys.visible == 0) {  // an output of zeros
    return dot_underflow(c, gradients, out, dot_budget(c, gradients));
  }
  const FunctionalSums sums = sums_of_products(row, form, range, keys, gradients, out, s);
  const OutputRounding stored = output_rounding(c.out);
  const double dot = dot_budget(c, gradients);
  const double error = functional_bound(
      row, form, sums, {.budget = hat(stored.u) + dot, .underflow = std::exp(dot) * stored.eta});
  return error + dot_underflow(c, gradients, out, dot);
}

double delta_cast_norm(const RowBudget& row, const FormSums& form, const ColumnRange& range,
                       const CastClasses& classes, const GradientKeys& keys,
                       const RowGradients& gradients, const double* out, DeltaScratch& s) {
  if (row.keys.visible == 0) return 0;
  const Contract& c = *row.contract;
  const FunctionalSums sums = sums_of_products(row, form, range, keys, gradients, out, s);
  double of_out = 0, of_upstream = 0;
  for (std::size_t n = 0; n < gradients.dout.size(); ++n) {
    of_out += std::pow(gradients.dout[n] * out[n], 2);
    of_upstream += std::pow(gradients.dout[n], 2);
  }
  // The numbers that are rounded are not the exact ones: |o^| sums up to S_O, and a norm is at most
  // a sum.
  const OutputRounding stored = output_rounding(c.out);
  const double computed = functional_magnitude(row, form, sums) - sums.magnitude;
  const double roundings = stored.u * (std::sqrt(of_out) + std::max(computed, 0.0)) +
                           stored.eta * std::sqrt(of_upstream);
  const double growth = std::exp(form.budget.division) / form.denominator;
  const double of_columns = std::expm1(form.budget.numerator_max);
  const double casts = classes.variance([&](std::size_t j) {
    return form.weights.cast[j] * growth * (std::fabs(keys.dp[j]) + of_columns * keys.abs_dp[j]);
  });
  return std::exp(dot_budget(c, gradients) + hat(c.softmax.u)) *
         std::sqrt(casts + roundings * roundings);
}

double delta_error_from_given(const RowBudget& row, const RowGradients& gradients,
                              const double* out) {
  const double dot = dot_budget(*row.contract, gradients);
  double magnitude = 0;
  for (std::size_t k = 0; k < gradients.dout.size(); ++k) {
    magnitude += std::fabs(gradients.dout[k] * out[k]);
  }
  return std::expm1(dot) * magnitude + dot_underflow(*row.contract, gradients, out, dot);
}

double delta_error_from_recomputed(const RowBudget& row, const ExactProbabilities& exact,
                                   const Probabilities& used, const GradientKeys& keys,
                                   double delta, DeltaScratch& s) {
  if (!(used.common < HUGE_VAL)) return HUGE_VAL;
  const double products = weighted_growth(row, exact, used.in_ds.data(), sum_budget(row), keys, s);
  return std::expm1(used.common) * std::fabs(delta) + std::exp(used.common) * products +
         rest(row, exact, used, keys, s);
}

double delta_error_from_stored(const RowBudget& row, const FormSums& form,
                               const ExactProbabilities& exact, const Probabilities& used,
                               const GradientKeys& keys, double delta, DeltaScratch& s) {
  if (!(form.denominator > 0)) return HUGE_VAL;
  const KeyBudgetView view = form.budget.view(row.keys);
  fit(s.shifted.p, row.keys.padded);
  fit(s.shifted.log_p, row.keys.padded);
  fit(s.beyond, row.keys.padded);
  const double D = std::fabs(delta);
  double common = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(row.keys.padded); ++k) {
    const double C = view.common[k] + view.more;
    s.shifted.p[k] = exact.p[k] + form.weights.common[k];
    s.shifted.log_p[k] = exact.log_p[k] + C;
    s.beyond[k] = std::max(0.0, used.in_ds[k] - C);  // n_div hat(u_div), and the cast
    common += form.weights.common[k] * std::fabs(keys.dp[k] - delta);
  }
  const double products =
      weighted_growth(row, s.shifted, s.beyond.data(), sum_budget(row), keys, s);
  const double of_denominator =
      form.weights.denominator_sum + form.budget.denominator_underflow / row.W;
  return (common + products + of_denominator * D) / form.denominator +
         rest(row, exact, used, keys, s);
}

}  // namespace ringproof::oracle
