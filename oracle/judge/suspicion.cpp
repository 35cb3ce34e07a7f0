#include "oracle/judge/suspicion.hpp"

#include <cmath>

#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

namespace {

/// Within 2^-12 of a step of a tie, where a small error of one sign decides the rounding.
bool nearly_tie(const OutputRule& rule, double exact) {
  const double near = 0x1p-11 * rounding_step(rule, std::abs(exact));  // of half a step
  return round_nearest(rule.dtype, exact - near) != round_nearest(rule.dtype, exact + near);
}

}  // namespace

void add_suspicion(const SuspicionRules& rules, const Problem& problem, const RowTruth& row,
                   const double* values, std::int64_t stride, const RowBound& bound,
                   const Tensor& out, const OutputRule& rule, Suspicion& suspicion) {
  ProbabilisticBound probable;
  bound_row_probabilistic(rules.contract, rules.exact_casts, problem, row, values, stride, bound,
                          rules.lambda, probable);
  const OutputRounding rounding =
      output_rounding({rule.dtype, rule.round, rule.overflow, rule.flush_to_zero});
  Suspicion of_row{.rows = 1,
                   .remainder = probable.remainder,
                   .variance = probable.variance,
                   .drift = probable.drift,
                   .drift_scale = probable.drift_scale};
  const double largest = format_of(rule.dtype).largest;
  bool asked = std::isfinite(probable.remainder) && std::isfinite(probable.variance);
  for (std::size_t c = 0; c < row.out.size(); ++c) {
    const Certified& exact = row.out[c];
    const auto column = static_cast<std::int64_t>(c);
    const double answer = out.at(row.b, row.h, row.i, column);
    const double reach = std::abs(exact.hi) + bound.out[c];
    asked = asked && reach < largest && !nearly_tie(rule, exact.hi);
    if (std::isfinite(probable.out[c])) {
      Element element =
          judged_element({row.b, row.h, row.i}, column, answer, exact, probable.out[c], rule);
      // Only an element that the deterministic bound accepts is suspect rather than wrong.
      if (element.decision == Decision::fail)
        element.accepted = wide_box(exact, probable.out[c], rule);
      ++suspicion.elements;
      suspicion.add(element);
    }
    const double sign = (exact.hi > 0) - (exact.hi < 0);
    of_row.lean += sign * ((answer - exact.hi) - exact.lo);
    of_row.remainder += exact.radius + rounding.eta + 0x1p-50 * std::abs(answer - exact.hi);
    of_row.variance += std::pow(rounding.u * reach, 2);
    // Rows whose outputs are nearly the same number are rounded alike: precondition (c).
    of_row.drift += sign * (round_nearest(rule.dtype, exact.hi) - exact.hi);
    of_row.drift_scale += std::pow(rounding.u * exact.hi, 2);
  }
  // Rows with the same query may be rounded alike.
  if (rules.queries) of_row.variance *= rules.queries->of(row.b, row.h, row.i);
  if (asked && std::isfinite(of_row.lean)) suspicion.merge(of_row);
}

double lean_bound(const Suspicion& suspicion, double lambda) {
  return lambda * std::sqrt(suspicion.variance) + suspicion.remainder;
}

bool model_refuted(const Suspicion& suspicion) {
  constexpr double kRefuted = 4;  // standard deviations, as for one row
  return std::abs(suspicion.drift) > kRefuted * std::sqrt(suspicion.drift_scale);
}

}  // namespace ringproof::oracle
