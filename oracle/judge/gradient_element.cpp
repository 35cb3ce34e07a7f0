#include "oracle/judge/gradient_element.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

namespace {

/// The smallest g such that a value conforming up to the factor 1 + g is certainly stored as
/// another number than any conforming value, (lo (1 + g)) (1 - u) - eta > hi (1 + u) + eta. Section
/// 10 of docs/contract.md.
double certified_gain(double magnitude, double error, const OutputRule& rule) {
  const double low = magnitude - error, high = magnitude + error;
  if (!(low > 0)) return HUGE_VAL;
  OutputRounding rounding{0, 0};
  if (rule.rounds) {
    rounding = output_rounding({rule.dtype, rule.round, rule.overflow, rule.flush_to_zero});
  }
  const double gain = (high * (1 + rounding.u) + 2 * rounding.eta) / (low * (1 - rounding.u)) - 1;
  return std::max(gain, 0.0);
}

}  // namespace

void add_gradient_element(const Row& row, std::int64_t column, double answer,
                          const Certified& exact, double bound, const OutputRule& rule,
                          TensorTally& tally) {
  if (std::isinf(bound)) {
    ++tally.unbounded;
    return;
  }
  tally.judge(row, column, answer, exact, bound, rule);
  // Where the ball holds zero, zeros and twice the truth may be the truth.
  if (std::abs(exact.hi) <= std::abs(exact.lo) + exact.radius) return;
  const double magnitude = std::abs(exact.hi), error = bound + std::abs(exact.lo) + exact.radius;
  tally.gain = std::min(tally.gain, certified_gain(magnitude, error, rule));
  ++tally.zeros.differ;
  tally.zeros.pass += magnitude <= error + rounding_step(rule, 0);
  ++tally.twice.differ;
  tally.twice.pass += magnitude <= error + rounding_step(rule, 2 * magnitude);
}

void add_unsure_element(const Row& row, std::int64_t column, double answer, TensorTally& tally) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  tally.add(Element{.row = row,
                    .column = column,
                    .answer = answer,
                    .exact = kNaN,
                    .accepted = {-kInfinity, kInfinity},
                    .error_over_bound = kNaN,
                    .decision = Decision::unsure});
}

}  // namespace ringproof::oracle
