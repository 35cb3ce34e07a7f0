// Parts with weights (combine.hpp), as logarithms with an error each.
#include "oracle/diagnose/combine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/accumulator.hpp"
#include "oracle/diagnose/parts.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double add_logs(double a, double b) {
  const double largest = std::max(a, b);
  if (largest == -kInfinity) return -kInfinity;
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

std::vector<std::size_t> present_parts(const RowMaterial& row, bool descending) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < row.parts.size(); ++t) {
    if (row.parts[t].present) order.push_back(t);
  }
  if (descending) std::reverse(order.begin(), order.end());
  return order;
}

double stats_error(const RowMaterial& row) {
  double error = 0;
  for (const Part& part : row.parts) {
    if (part.present) error = std::max({error, part.lse_error, part.max_error});
  }
  return error;
}

void lse_forms(double computed, double error, ExpectedRow& expected) {
  const Expected truth = expected.lse.front().value;
  expected.lse = {{"lse of the wrong sum", Expected::value(computed, error)},
                  {"lse right", truth},
                  {"lse left open", Expected::of_kind(Expected::Kind::anything)}};
  if (!std::isfinite(computed)) {
    expected.lse.front().value = Expected::value(computed);
    if (std::isnan(computed)) expected.lse.front().value = Expected::of_kind(Expected::Kind::nan);
  }
}

double largest_exponent(const Contract& contract) {
  return contract.softmax.u <= 0x1p-50 ? 709.782712893384 : 88.7228390520684;
}

double combination_budget(const RowMaterial& row) {
  const Contract& c = row.contract;
  double count = 0, magnitude = 0, least = kInfinity, most = -kInfinity;
  for (const Part& part : row.parts) {
    if (!part.present) continue;
    ++count;
    magnitude = std::max({magnitude, std::abs(part.lse), std::abs(part.max)});
    least = std::min(least, part.lse);
    most = std::max(most, part.max);
  }
  // Every step rescales, adds, and stores; exponents and running LSEs are rounded relative to their
  // size. Generous: a box may be larger than it need be, never smaller.
  const double step = hat(c.softmax.exp_rel) + 2 * hat(c.pv.u) + 2 * hat(c.l.u) +
                      hat(c.partials.run_u) + hat(c.lse.log_rel) + c.lse.log_abs;
  const double shift = std::expm1(3 * hat(c.softmax.u) + hat(c.partials.lse_u)) *
                       (magnitude + std::max(0.0, most - least));
  return (count + 1) * (step + shift) + hat(c.partials.o_u) + 2 * hat(c.finish.u) +
         std::expm1(hat(c.score.scale_const_u)) * std::max(0.0, most - least);
}

void weigh(const RowMaterial& row, const std::vector<double>& log_weight,
           const std::vector<double>& log_error, ExpectedRow& expected) {
  const double budget = combination_budget(row);
  const double eta = static_cast<double>(row.parts.size() + 1) *
                     (row.contract.partials.eta + 2 * row.contract.pv.eta);
  for (std::size_t c = 0; c < expected.out.size(); ++c) {
    double value = 0, error = eta, radius = 0;
    for (std::size_t t = 0; t < row.parts.size(); ++t) {
      if (!row.parts[t].present || log_weight[t] == -kInfinity) continue;
      const double weight = std::exp(log_weight[t]);
      const Certified& out = row.parts[t].out[c];
      const double magnitude = std::abs(out.hi) + out.radius + row.parts[t].bound[c];
      value += weight * out.hi;
      radius += weight * (out.radius + 0x1p-45 * std::abs(out.hi));
      error += weight * (row.parts[t].bound[c] * std::exp(budget) +
                         std::expm1(log_error[t] + budget) * magnitude);
    }
    expected.out[c] = {Expected::Kind::ball, {value, 0, radius}, error * (1 + 0x1p-30)};
    if (!std::isfinite(value) || !std::isfinite(error)) {
      expected.out[c] = Expected::of_kind(std::isnan(value) ? Expected::Kind::not_finite
                                                            : Expected::Kind::anything);
    }
  }
}

std::function<void(const RowMaterial&, ExpectedRow&)> absorbed(std::vector<std::int64_t> named,
                                                               double times) {
  return [named = std::move(named), times](const RowMaterial& row, ExpectedRow& expected) {
    if (row.truth.empty()) return;
    std::vector<double> weight(row.parts.size(), -kInfinity);
    double sum = -kInfinity;
    for (std::size_t t = 0; t < weight.size(); ++t) {
      if (!row.parts[t].present) continue;
      const bool is_named =
          std::find(named.begin(), named.end(), static_cast<std::int64_t>(t)) != named.end();
      weight[t] = row.parts[t].lse + (is_named ? std::log(times) : 0);
      sum = add_logs(sum, weight[t]);
    }
    if (sum == -kInfinity) {  // nothing is left: an empty row
      const bool zero = row.head.problem.spec.empty_row == EmptyRow::zero;
      expected.set_out(zero ? Expected::value(0) : Expected::of_kind(Expected::Kind::anything));
      expected.lse = {{"", Expected::value(-kInfinity)},
                      {"lse left open", Expected::of_kind(Expected::Kind::anything)}};
      return;
    }
    for (double& w : weight) w -= sum;
    const double error = 2 * stats_error(row);
    weigh(row, weight, std::vector<double>(weight.size(), error), expected);
    lse_forms(sum, error + combination_budget(row), expected);
  };
}

}  // namespace ringproof::oracle
