// Handing out the parts of one row (gradient_parts.hpp).
#include "oracle/contract/gradient_parts.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/backward_budget.hpp"

namespace ringproof::oracle {

namespace {

/// ED and the underflow of dP once more for an upstream gradient of ones: (27), (27a) and (34) read
/// it from the row's gradients. Overwrites what `s` holds of the right ones.
OnesParts parts_of_ones(const Contract& c, const Problem& problem, const BackwardHead& head,
                        const RowTruth& truth, const RowGradients& right, const ValueSums& values,
                        BackwardScratch& s) {
  thread_local RowGradients row;
  const auto columns = static_cast<std::size_t>(problem.value_dim);
  const double rounding = 0x1p-53 * static_cast<double>(columns + 1);
  OnesParts ones;
  row.dout.assign(columns, 1.0);
  double size = 0;
  for (std::size_t k = 0; k < columns; ++k) {
    ones.D += s.out[k];
    size += std::fabs(s.out[k]);
    if (!isolated(c)) ones.D_radius += std::fabs(truth.out[k].lo) + truth.out[k].radius;
  }
  ones.D_radius += rounding * size;
  row.D = ones.D;
  row.D_radius = ones.D_radius;
  row.dlse = right.dlse;
  row.dp.resize(right.dp.size());
  row.abs_dp.resize(right.dp.size());
  row.dp_radius = 0;
  for (std::size_t n = 0; n < right.dp.size(); ++n) {
    const std::size_t j = static_cast<std::size_t>(truth.keys.first) + n;
    row.dp[n] = values.sum[j];
    row.abs_dp[n] = values.abs_sum[j];
    row.dp_radius = std::max(row.dp_radius, rounding * values.abs_sum[j]);
  }
  row.factor = right.factor;
  GradientBudget budget;
  s.keys.gather(s.row.keys, row);
  product_budget(c, problem, head, row, budget);
  gradient_errors(budget, s.row.keys, s.keys);
  ones.delta_error = used_probabilities(c, head, row, s) + ones.D_radius + row.dp_radius;
  ones.dp_underflow = budget.dp_underflow;
  return ones;
}

}  // namespace

ValueSums::ValueSums(const Problem& problem, const BackwardHead& head)
    : sum(static_cast<std::size_t>(problem.keys)), abs_sum(sum) {
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    const double* value = head.values + j * head.values_stride;
    for (std::int64_t c = 0; c < problem.value_dim; ++c) {
      sum[static_cast<std::size_t>(j)] += value[c];
      abs_sum[static_cast<std::size_t>(j)] += std::fabs(value[c]);
    }
  }
}

double sink_gradient_error(const SinkParts& sink, double delta, double delta_error) {
  const double Y = sink.probability + sink.after, grow = std::exp(std::min(Y, 700.0));
  const double grown = Y < 1 ? sink.p * std::expm1(Y) : std::exp(std::min(sink.log_p + Y, 700.0));
  const double lost = sink.lost * grow;
  return grown * delta + (sink.p + grown + lost) * delta_error + lost * delta + sink.underflow;
}

void hand_out_parts(const Contract& c, const Problem& problem, const BackwardHead& head,
                    const RowTruth& truth, const RowGradients& gradients,
                    const GradientBudget& budget, BackwardScratch& s, RowGradientParts& parts) {
  const auto visible = static_cast<std::size_t>(s.row.keys.visible);
  const auto of_keys = [&](const std::vector<double>& from, std::vector<double>& to) {
    to.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(visible));
  };
  of_keys(s.keys.grown, parts.grown);
  of_keys(s.keys.grown_query, parts.grown_query);
  of_keys(s.keys.grown_value, parts.grown_value);
  of_keys(s.keys.f_error, parts.factor_error);
  for (std::size_t k = 0; k < visible; ++k) {
    parts.lost_ds = std::max(parts.lost_ds, s.used.lost_ds[k]);
    parts.lost_dv = std::max(parts.lost_dv, s.used.lost_dv[k]);
  }
  parts.budget = budget;
  parts.query_underflow = query_gradient_sum(c, problem, s.row.terms).underflow;
  parts.sink = truth.has_sink ? sink_parts(c, problem, budget, s) : SinkParts{};
  parts.ones = parts_of_ones(c, problem, head, truth, gradients, *parts.values, s);
}

}  // namespace ringproof::oracle
