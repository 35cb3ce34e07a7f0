// What one row could have refused (power.hpp).
#include "oracle/contract/power.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

namespace {

/// What the mean of up to 2^20 values may lose to rounding, as a share of their mean magnitude.
constexpr double kMeanRounding = 0x1p-32;

bool by_lse(Merge form) {
  return form == Merge::lse_sequential || form == Merge::lse_once || form == Merge::lse_sigmoid;
}

/// 1 - e^{-2 Lam_max}; under merges by LSE, |L| grows when keys are left out, which the factor
/// covers as long as R (k_L + 2^-22) <= 2^-11. What is lost to underflow is counted for a row that
/// keeps half of its weight. (42)
double missing_mass(const BoundedRow& b, double largest_lse) {
  double margin = 1, lost = 0;
  for (std::size_t f = 0; f < b.form_count; ++f) {
    lost = std::max(lost, b.forms[f].budget.denominator_underflow / b.row.W);
    if (!by_lse(b.forms[f].budget.form)) continue;
    const double running = std::expm1(b.row.softmax_hat + hat(b.row.contract->partials.lse_u));
    if (b.row.R * (running + 0x1p-22) > 0x1p-11) return 1;
    margin = 1 + 0x1p-10;
  }
  const double mass = -std::expm1(-2 * margin * largest_lse);
  return mass > 0.5 && lost > 0x1p-60 ? 1 : mass;
}

/// What a kernel may return for a number within e of o lies within `low` and `high` in magnitude.
struct Accepted {
  double low, high;
  Accepted(double o, double e, const OutputRounding& rounding)
      : low((o - e) * (1 - rounding.u) - rounding.eta),
        high((o + e) * (1 + rounding.u) + rounding.eta) {}
};

}  // namespace

void element_power(const BoundedRow& b, const RowBound& bound, double largest_lse,
                   RowPower& power) {
  const OutputRounding rounding = output_rounding(b.row.contract->out);
  const auto keys = static_cast<double>(b.row.keys.visible);
  double sum_of_magnitudes = 0, mean_shift = 0, mean_magnitudes = 0;
  for (std::int64_t column = 0; column < b.rows.columns; ++column) {
    const auto c = static_cast<std::size_t>(column);
    const double out = b.out[c], o = std::fabs(out), e = bound.out[c];
    const double mean = keys > 0 ? b.range.sum[c] / keys : 0;
    const double unsure = b.truth.out[c].radius;
    const double mean_unsure = kMeanRounding * (keys > 0 ? b.range.abs_sum[c] / keys : 0);
    const Accepted accepted(o, e, rounding);
    if (accepted.low > 0) power.gain = std::min(power.gain, accepted.high / accepted.low - 1);
    if (o > unsure) {
      ++power.zeros_differ;
      power.zeros_pass += o - e <= rounding.eta;
      ++power.twice_differ;
      power.twice_pass += !(2 * accepted.low > accepted.high);
    }
    if (std::fabs(mean - out) > unsure + mean_unsure) {
      ++power.mean_differ;
      power.mean_pass += std::fabs(mean - out) <= e + rounding.u * (o + e) + rounding.eta;
    }
    sum_of_magnitudes += o;
    mean_shift += out < 0 ? out - mean : mean - out;
    mean_magnitudes += std::fabs(mean) * rounding.u + rounding.eta;
  }
  const double E = bound.functional;
  if (sum_of_magnitudes > E) {  // (42)
    power.gain = std::min(power.gain, 2 * E / (sum_of_magnitudes - E));
  }
  power.functional_refuses_zeros = sum_of_magnitudes > E;
  power.functional_refuses_mean = std::fabs(mean_shift) - mean_magnitudes > E;
  power.functional_refuses_twice = sum_of_magnitudes > 3 * E;
  power.missing_mass_lse = missing_mass(b, largest_lse);
}

}  // namespace ringproof::oracle
