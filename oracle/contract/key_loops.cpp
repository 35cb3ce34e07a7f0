// Loops over keys for every vector target (key_loops.hpp). They are plain loops without branches
// that the compiler vectorises for the target; no operation is reordered, so targets agree bit for
// bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/key_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "oracle/contract/key_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

// Relative rounding of the score that the truth stores (truth.hpp).
constexpr double kScoreRounding = 0x1p-53;

void ScoreErrors(const ScoreBudget& c, double score_radius, RowKeys& keys) {
  const std::int64_t n = keys.visible;
  const double* HWY_RESTRICT dot = keys.dot.data();
  const double* HWY_RESTRICT abs_dot = keys.abs_dot.data();
  const double* HWY_RESTRICT score = keys.score.data();
  double* HWY_RESTRICT error = keys.error.data();
  for (std::int64_t j = 0; j < n; ++j) error[j] = dot_error(c, abs_dot[j], dot[j]);
  const double* HWY_RESTRICT inner = dot;
  if (keys.has_softcap) {
    inner = keys.capped.data();
    for (std::int64_t j = 0; j < n; ++j) error[j] = softcap_error(c, error[j], dot[j], inner[j]);
  }
  if (keys.has_bias && keys.has_alibi) {
    const double* HWY_RESTRICT bias = keys.bias.data();
    const double* HWY_RESTRICT alibi = keys.alibi.data();
    for (std::int64_t j = 0; j < n; ++j) {
      error[j] = two_bias_error(c, error[j], inner[j], bias[j], alibi[j], score[j]);
    }
  } else if (keys.has_bias || keys.has_alibi) {
    const double* HWY_RESTRICT bias = keys.has_bias ? keys.bias.data() : keys.alibi.data();
    for (std::int64_t j = 0; j < n; ++j) error[j] = bias_error(c, error[j], bias[j], score[j]);
  }
  // A product sum of zeros is exactly zero, and adding a stored bias to it is exact too.
  const bool zero_is_exact = !keys.has_alibi;
  for (std::int64_t j = 0; j < n; ++j) {
    const double radius = score_radius + kScoreRounding * std::fabs(score[j]);
    error[j] += zero_is_exact && abs_dot[j] == 0 ? 0.0 : radius;
  }
}

HWY_INLINE double LargerOf(double a, double b) { return a < b ? b : a; }

ScoreExtremes Extremes(const RowKeys& keys, double max_score) {
  const double* HWY_RESTRICT score = keys.score.data();
  const double* HWY_RESTRICT error = keys.error.data();
  ScoreExtremes result;
  result.upper = result.lower = -HUGE_VAL;
  result.lowest = HUGE_VAL;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    result.upper = LargerOf(result.upper, score[j] + error[j]);
    result.lower = LargerOf(result.lower, score[j] - error[j]);
    result.lowest = -LargerOf(-result.lowest, error[j] - score[j]);
    result.error = LargerOf(result.error, error[j]);
    result.dyadic_distance = LargerOf(result.dyadic_distance, dyadic_distance(score[j], max_score));
  }
  for (std::int64_t j = 0; j < keys.visible; ++j) {
    result.abs_dot = LargerOf(result.abs_dot, keys.abs_dot[static_cast<std::size_t>(j)]);
  }
  return result;
}

void KeyBudgets(const ArgumentBudget& c, const ScoreExtremes& extremes, RowKeys& keys) {
  const double* HWY_RESTRICT score = keys.score.data();
  const double* HWY_RESTRICT error = keys.error.data();
  double* HWY_RESTRICT common = keys.common.data();
  double* HWY_RESTRICT common_lse = keys.common_lse.data();
  double* HWY_RESTRICT smallest_reach = keys.reach.data();
  const double other_distance = extremes.dyadic_distance + extremes.error;
  const bool eager = c.lazy == 0;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    const double s = score[j], eps = error[j];
    const double reach = argument_reach(c, s, eps);
    const double maximum = maximum_reach(c, s, eps);
    const double x = argument_error(c, reach, maximum);
    const double mu = c.maximum * maximum;
    common[j] = eps + x + mu + temperature_error(c, s, eps);                               // (10)
    common_lse[j] = eps + x + c.maximum_lse * maximum + temperature_error_lse(c, s, eps);  // (11)
    const double rounding = x + mu + c.exp_error;
    const double y = reach + rounding;
    const double y_dyadic =
        dyadic_distance(s, c.max_score) + other_distance + eps + c.temperature * reach + rounding;
    smallest_reach[j] = eager && y < y_dyadic ? y : y_dyadic;  // (12)
  }
  if (keys.has_sink) {
    const std::int64_t j = keys.visible;
    common[j] +=
        sink_temperature_error(c, score[j], error[j]) - temperature_error(c, score[j], error[j]);
  }
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(ScoreErrors);
HWY_EXPORT(Extremes);
HWY_EXPORT(KeyBudgets);

void score_errors(const ScoreBudget& budget, double score_radius, RowKeys& keys) {
  HWY_DYNAMIC_DISPATCH(ScoreErrors)(budget, score_radius, keys);
}

ScoreExtremes score_extremes(const RowKeys& keys, double max_score) {
  return HWY_DYNAMIC_DISPATCH(Extremes)(keys, max_score);
}

void key_budgets(const ArgumentBudget& budget, const ScoreExtremes& extremes, RowKeys& keys) {
  HWY_DYNAMIC_DISPATCH(KeyBudgets)(budget, extremes, keys);
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
