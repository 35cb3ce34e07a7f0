// Weights of parts (combine.hpp), as logarithms with an error each.
#include "oracle/diagnose/combine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/accumulator.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

double add_logs(double a, double b) {
  const double largest = std::max(a, b);
  if (largest == -kInfinity) return -kInfinity;
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

/// Numbers of the parts that are there, in the order in which they come in.
std::vector<std::size_t> present(const RowMaterial& row, bool descending = false) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < row.parts.size(); ++t) {
    if (row.parts[t].present) order.push_back(t);
  }
  if (descending) std::reverse(order.begin(), order.end());
  return order;
}

/// The largest error of an LSE or a maximum among the parts.
double stats_error(const RowMaterial& row) {
  double error = 0;
  for (const Part& part : row.parts) {
    if (part.present) error = std::max({error, part.lse_error, part.max_error});
  }
  return error;
}

/// What a kernel may hand over as LSE beside an output that is put together wrongly.
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

}  // namespace

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

namespace {

/// ln of the factor by which the old state is multiplied when the n-th tile comes in.
double log_factor(OnlineRule::Factor factor, const RowMaterial& row,
                  const std::vector<std::size_t>& order, const std::vector<double>& running,
                  std::size_t n) {
  if (n == 0) return 0;
  const double right = running[n - 1] - running[n];
  switch (factor) {
    case OnlineRule::Factor::right:
      return right;
    case OnlineRule::Factor::none:
      return 0;
    case OnlineRule::Factor::inverse:
      return -right;
    case OnlineRule::Factor::none_at_last:
      return n + 1 == order.size() ? 0 : right;
    case OnlineRule::Factor::late:
      return n == 1 ? 0 : running[n - 2] - running[n - 1];
    case OnlineRule::Factor::of_tiles:
      return row.parts[order[n - 1]].max - row.parts[order[n]].max;
    case OnlineRule::Factor::from_first:
      return running[0] - std::max(running[0], row.parts[order[n]].max);
    case OnlineRule::Factor::zero:
      return -kInfinity;
  }
  return right;
}

double reference_of(OnlineRule::Reference reference, const RowMaterial& row,
                    const std::vector<std::size_t>& order, const std::vector<double>& running,
                    std::size_t n) {
  const double tile = row.parts[order[n]].max;
  const bool last = n + 1 == order.size();
  switch (reference) {
    case OnlineRule::Reference::running:
      return running[n];
    case OnlineRule::Reference::tile:
      return tile;
    case OnlineRule::Reference::previous:
      return n > 0 ? running[n - 1] : running[n];
    case OnlineRule::Reference::previous_at_last:
      return n > 0 && last ? running[n - 1] : running[n];
    case OnlineRule::Reference::first_or_tile:
      return std::max(running[0], tile);
  }
  return running[n];
}

void combine_online(const OnlineRule& rule, const RowMaterial& row, ExpectedRow& expected) {
  if (row.truth.empty()) return;
  const std::vector<std::size_t> order = present(row, rule.descending);
  std::vector<double> running;
  double maximum = -kInfinity;
  for (const std::size_t t : order) {
    maximum = std::max(maximum, row.parts[t].max);
    running.push_back(maximum);
  }
  const double limit = largest_exponent(row.contract);
  std::vector<double> numerator(row.parts.size(), -kInfinity), denominator = numerator;
  double largest = -kInfinity;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const double reference = reference_of(rule.reference, row, order, running, n);
    const double o = log_factor(rule.o, row, order, running, n);
    const double l = log_factor(rule.l, row, order, running, n);
    for (std::size_t before = 0; before < n; ++before) {
      numerator[order[before]] += o;
      denominator[order[before]] += l;
    }
    numerator[order[n]] = denominator[order[n]] = row.parts[order[n]].lse - reference;
    largest = std::max({largest, row.parts[order[n]].max - reference, o, l});
    for (const std::size_t t : order) largest = std::max({largest, numerator[t], denominator[t]});
  }
  double log_l = -kInfinity;
  for (const std::size_t t : order) log_l = add_logs(log_l, denominator[t]);
  // What does not fit the softmax's type is an infinity, and soon a NaN.
  if (std::max(largest, log_l) > limit - 8) {
    const bool surely = largest > limit + 1;
    expected.set_out(
        Expected::of_kind(surely ? Expected::Kind::not_finite : Expected::Kind::anything));
    expected.lse = {{"lse left open", Expected::of_kind(Expected::Kind::anything)}};
    return;
  }
  const double error = 4 * stats_error(row);
  std::vector<double> weight(row.parts.size(), -kInfinity);
  for (const std::size_t t : order) weight[t] = numerator[t] - log_l;
  weigh(row, weight, std::vector<double>(row.parts.size(), error), expected);
  lse_forms((rule.lse_from_first ? running.front() : running.back()) + log_l,
            error + combination_budget(row), expected);
}

/// Weights of a chain of merges, each of which gives the old result the new one's weight.
void exchanged_weights(const RowMaterial& row, const std::vector<std::size_t>& order,
                       std::vector<double>& weight) {
  double lse = -kInfinity;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const double part = row.parts[order[n]].lse, sum = add_logs(lse, part);
    for (std::size_t before = 0; before < n; ++before) weight[order[before]] += part - sum;
    weight[order[n]] = n == 0 ? 0 : lse - sum;
    lse = sum;
  }
}

void proportional_weights(const RowMaterial& row, const std::vector<std::size_t>& order,
                          double exponent, std::vector<double>& weight) {
  double sum = -kInfinity;
  for (const std::size_t t : order) sum = add_logs(sum, exponent * row.parts[t].lse);
  for (const std::size_t t : order) weight[t] = exponent * row.parts[t].lse - sum;
}

/// The LSEs that a merge in another base may hand over.
void lse_of_base(double exponent, const RowMaterial& row, const std::vector<std::size_t>& order,
                 ExpectedRow& expected) {
  double sum = -kInfinity;
  for (const std::size_t t : order) sum = add_logs(sum, exponent * row.parts[t].lse);
  const double error = 4 * stats_error(row) + combination_budget(row);
  lse_forms(sum / exponent, error / std::min(1.0, exponent), expected);
  expected.lse.insert(expected.lse.begin() + 1,
                      {"lse in the merge's own base", Expected::value(sum, error * exponent)});
  expected.lse.insert(expected.lse.begin() + 1,
                      {"lse in the other base", Expected::value(sum / (exponent * exponent),
                                                                error / (exponent * exponent))});
}

void combine_merge(MergeRule rule, const RowMaterial& row, ExpectedRow& expected) {
  if (row.truth.empty() && rule != MergeRule::empty_is_nan) return;
  const std::vector<std::size_t> order = present(row);
  std::vector<double> weight(row.parts.size(), -kInfinity);
  const double error = 4 * stats_error(row);
  double lse = std::numeric_limits<double>::quiet_NaN();
  switch (rule) {
    case MergeRule::average_present:
    case MergeRule::average_all: {
      const auto ranks = rule == MergeRule::average_all ? row.parts.size() : order.size();
      for (const std::size_t t : order) weight[t] = -std::log(static_cast<double>(ranks));
      break;
    }
    case MergeRule::sum:
      for (const std::size_t t : order) weight[t] = 0;
      break;
    case MergeRule::base_two:
    case MergeRule::log2_as_natural: {
      const double exponent = rule == MergeRule::base_two ? kLn2 : 1 / kLn2;
      proportional_weights(row, order, exponent, weight);
      weigh(row, weight, std::vector<double>(weight.size(), 2 * error), expected);
      return lse_of_base(exponent, row, order, expected);
    }
    case MergeRule::exchanged:
      exchanged_weights(row, order, weight);
      break;
    case MergeRule::without_maximum: {
      double most = -kInfinity;
      for (const std::size_t t : order) most = std::max(most, row.parts[t].lse);
      const double limit = largest_exponent(row.contract);
      if (std::abs(most) < limit - 8) return;  // in range: only roundings differ
      const bool surely = most > limit + 1 || most < -limit - 20;
      expected.set_out(
          Expected::of_kind(surely ? Expected::Kind::not_finite : Expected::Kind::anything));
      expected.lse.push_back({"lse left open", Expected::of_kind(Expected::Kind::anything)});
      return;
    }
    case MergeRule::first:
      weight[order.front()] = 0;
      lse = row.parts[order.front()].lse;
      break;
    case MergeRule::last:
      weight[order.back()] = 0;
      lse = row.parts[order.back()].lse;
      break;
    case MergeRule::unscaled:
      for (const std::size_t t : order) weight[t] = row.parts[t].lse - row.parts[t].max;
      lse = -kInfinity;
      for (const std::size_t t : order) lse = add_logs(lse, weight[t]);
      for (const std::size_t t : order) weight[t] -= lse;
      lse += row.truth.max_score;
      break;
    case MergeRule::empty_is_nan: {
      const bool empty_start = row.parts.size() > 1 && !row.parts[0].present;
      if (!empty_start) return;
      expected.set_out(Expected::of_kind(Expected::Kind::nan));
      expected.lse = {{"", Expected::of_kind(Expected::Kind::nan)},
                      {"lse left open", Expected::of_kind(Expected::Kind::anything)}};
      return;
    }
  }
  weigh(row, weight, std::vector<double>(weight.size(), error), expected);
  lse_forms(lse, error + combination_budget(row), expected);
}

}  // namespace

std::function<void(const RowMaterial&, ExpectedRow&)> online(const OnlineRule& rule) {
  return [rule](const RowMaterial& row, ExpectedRow& expected) {
    combine_online(rule, row, expected);
  };
}

std::function<void(const RowMaterial&, ExpectedRow&)> merged(MergeRule rule) {
  return
      [rule](const RowMaterial& row, ExpectedRow& expected) { combine_merge(rule, row, expected); };
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
