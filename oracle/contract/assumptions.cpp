// No overflow anywhere (assumptions.hpp).
#include "oracle/contract/assumptions.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// Omega of the formats that scores pass through.
double largest_score(const Contract& c) {
  double omega = largest_of_format(c.softmax.u, c.score.eta);
  for (const auto* store : {&c.score.store, &c.score.bias_store, &c.score.softcap.store}) {
    for (const double u : *store) omega = std::min(omega, largest_of_format(u, c.score.store_eta));
  }
  return omega;
}

/// sum_t |q_t k_jt| of the row's largest key, before the scale.
double largest_product_sum(const RowBudget& row, const Problem& problem, const RowTruth& truth) {
  const double scale = problem.spec.scale_of(problem.head_dim);
  if (scale != 0) return row.extremes.abs_dot / std::fabs(scale);
  double largest = 0;
  const std::int64_t kv = problem.kv_head(truth.h);
  for (std::int64_t k = 0; k < row.keys.visible; ++k) {
    const std::int64_t j = truth.keys.first + row.keys.index[static_cast<std::size_t>(k)];
    double sum = 0;
    for (std::int64_t t = 0; t < problem.head_dim; ++t) {
      sum +=
          std::fabs(problem.q.at(truth.b, truth.h, truth.i, t) * problem.k.at(truth.b, kv, j, t));
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

double largest_of_format(double u, double eta) {
  // The underflow tells formats with few exponent bits apart; without one the range is that of
  // fp32, or of fp64 where the relative error says so.
  if (u <= 0x1p-50 && eta < 0x1p-1000) return format_of(DType::f64).largest;
  if (eta < 0x1p-100) return format_of(u >= 0x1p-8 ? DType::bf16 : DType::f32).largest;
  if (u <= 0x1p-10) return format_of(DType::f16).largest;
  return format_of(eta > 0x1p-13 ? DType::f8_e4m3 : DType::f8_e5m2).largest;
}

std::string failed_assumption(const RowBudget& row, const Problem& problem, const RowTruth& truth,
                              const ColumnRange& range, std::int64_t columns) {
  const Contract& c = *row.contract;
  const double omega = largest_score(c);
  if (!(largest_product_sum(row, problem, truth) <= omega) || !(std::fabs(row.upper()) <= omega) ||
      !(std::fabs(row.lower) <= omega)) {
    return "H1: a score may overflow";
  }
  const double lazy = std::exp(row.lazy());
  if (c.p.u > 0 && !(lazy * c.p.scale * (1 + c.p.u) <= largest_of_format(c.p.u, c.p.eta))) {
    return "H1: a probability may overflow";
  }
  double largest_sum = 0;
  for (std::int64_t k = 0; k < columns; ++k) {
    largest_sum = std::max(largest_sum, range.abs_sum[static_cast<std::size_t>(k)]);
  }
  const double sum = lazy * c.p.scale * largest_sum;
  double accumulator = largest_of_format(c.pv.u, c.pv.eta);
  if (row.R > 1) {
    for (const double u : {c.partials.o_u, c.partials.run_u}) {
      if (u > 0) accumulator = std::min(accumulator, largest_of_format(u, c.partials.eta));
    }
  }
  if (!(sum <= accumulator)) return "H1: the sum of values may overflow";
  if (!(row.n * lazy <= largest_of_format(c.l.u, c.l.eta))) {
    return "H1: the denominator may overflow";
  }
  return {};
}

GradientLimits gradient_limits(const Contract& c) {
  const Contract::Backward& b = c.backward;
  GradientLimits limits{.dp = largest_of_format(c.softmax.u, b.dp_eta),
                        .ds = largest_of_format(b.ds_u > 0 ? b.ds_u : c.softmax.u, b.ds_eta),
                        .sum = largest_of_format(b.ring.acc_u, b.grad_eta)};
  for (const double u : b.dp_store) {
    limits.dp = std::min(limits.dp, largest_of_format(u, b.dp_store_eta));
  }
  return limits;
}

}  // namespace ringproof::oracle
