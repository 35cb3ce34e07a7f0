#include "oracle/diagnose/gradient_row.hpp"

#include <cmath>

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double probability(const GradientRule& rule, double p) {
  return rule.p_exponent == 1 ? p : std::pow(p, rule.p_exponent);
}

}  // namespace

RowOfPairs::RowOfPairs(const GradientPairs& pairs, const HeadPairs& head, const GradientRule& rule,
                       std::int64_t i)
    : pairs_(pairs), head_(head), rule_(rule), i_(i) {
  for (std::int64_t c = 0; c < pairs.value_dim; ++c) {
    const double given = head.dout[size(i * pairs.value_dim + c)];
    const double out = head.out[size(i * pairs.value_dim + c)];
    dout.push_back(rule.ones_for_dout ? 1.0 : given);
    const double in_D = rule.ones_for_dout_in_D ? 1.0 : given;
    D_ += in_D * out;
    absolute_D_ += std::abs(in_D * out);
  }
  if (!rule.ones_for_dout_in_D) D_ = head.D[size(i)];
  if (rule.negative_D) D_ = -D_;
  if (rule.without_D) D_ = absolute_D_ = 0;
  dlse_ = rule.without_dlse ? 0 : head.dlse[size(i)];
  if (rule.negative_dlse) dlse_ = -dlse_;
}

void RowOfPairs::pair(std::int64_t j) {
  const std::size_t cell = size(i_ * pairs_.keys + j);
  const std::int64_t from = rule_.v_row ? rule_.v_row(i_, j) : j;
  double dp = 0, absolute = 0;
  for (std::int64_t c = 0; from >= 0 && c < pairs_.value_dim; ++c) {
    const double term = dout[size(c)] * pairs_.v[size(from * pairs_.value_dim + c)];
    dp += term;
    absolute += std::abs(term);
  }
  p = probability(rule_, head_.p[cell]);
  const double factor = rule_.without_derivative ? 1 : head_.factor[cell];
  const double weight = rule_.without_p ? (p > 0 ? 1 : 0) : p;
  bias = {weight * (dp - D_ + dlse_), weight * (absolute + absolute_D_ + std::abs(dlse_))};
  ds = {factor * bias.value, std::abs(factor) * bias.absolute};
  if (rule_.derivative_in_bias) bias = ds;
}

Term RowOfPairs::sink() const {
  const double weight = rule_.without_p_sink ? 1 : probability(rule_, head_.p_sink[size(i_)]);
  return {-weight * (D_ - dlse_), weight * (absolute_D_ + std::abs(dlse_))};
}

}  // namespace ringproof::oracle
