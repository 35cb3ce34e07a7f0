// Merges of normalised partial results with wrong weights (combine.hpp, MergeRule).
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/parts.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// Weights of a chain of merges in which the old result gets the new one's weight, or (aliased)
/// none.
void chained_weights(const RowMaterial& row, const std::vector<std::size_t>& order, bool aliased,
                     std::vector<double>& weight) {
  double lse = -kInfinity;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const double part = row.parts[order[n]].lse, sum = add_logs(lse, part);
    for (std::size_t before = 0; before < n && !aliased; ++before) {
      weight[order[before]] += part - sum;
    }
    weight[order[n]] = n == 0 ? 0 : (aliased ? part : lse) - sum;
    lse = sum;
  }
}

/// The largest amount by which a part's LSE exceeds that of the parts before it.
double largest_rise(const RowMaterial& row, const std::vector<std::size_t>& order) {
  double lse = -kInfinity, rise = -kInfinity;
  for (const std::size_t t : order) {
    if (lse > -kInfinity) rise = std::max(rise, row.parts[t].lse - lse);
    lse = add_logs(lse, row.parts[t].lse);
  }
  return rise;
}

/// Rules that only matter where a part is empty; true if the rule is one of them.
bool combine_empty(MergeRule rule, const RowMaterial& row, const std::vector<std::size_t>& order,
                   ExpectedRow& expected) {
  const bool none = order.size() == row.parts.size() || row.parts.size() < 2;
  switch (rule) {
    case MergeRule::empty_first_is_nan:
    case MergeRule::empty_last_is_nan:
    case MergeRule::any_empty_is_nan: {
      const bool first = !none && !row.parts.front().present;
      const bool last = !none && !row.parts.back().present;
      const bool hit = rule == MergeRule::empty_first_is_nan  ? first
                       : rule == MergeRule::empty_last_is_nan ? last
                                                              : !none;
      if (!hit) return true;
      expected.set_out(Expected::of_kind(Expected::Kind::nan));
      expected.lse = {{"lse NaN as well", Expected::of_kind(Expected::Kind::nan)},
                      {"lse left open", Expected::of_kind(Expected::Kind::anything)}};
      return true;
    }
    case MergeRule::empty_weighs_one: {
      if (none || order.empty()) return true;
      const auto empty = static_cast<double>(row.parts.size() - order.size());
      double sum = std::log(empty);
      for (const std::size_t t : order) sum = add_logs(sum, row.parts[t].lse);
      std::vector<double> weight(row.parts.size(), -kInfinity);
      for (const std::size_t t : order) weight[t] = row.parts[t].lse - sum;
      const double error = 4 * stats_error(row);
      weigh(row, weight, std::vector<double>(weight.size(), error), expected);
      lse_forms(sum, error + combination_budget(row), expected);
      return true;
    }
    default:
      return false;
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
  if (row.truth.empty()) return;
  const std::vector<std::size_t> order = present_parts(row);
  if (combine_empty(rule, row, order, expected)) return;
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
    case MergeRule::average_by_keys:
      for (const std::size_t t : order) {
        weight[t] = std::log(static_cast<double>(std::max<std::int64_t>(1, row.parts[t].keys)) /
                             static_cast<double>(std::max<std::int64_t>(1, row.truth.visible)));
      }
      break;
    case MergeRule::exchanged:
    case MergeRule::aliased:
      chained_weights(row, order, rule == MergeRule::aliased, weight);
      break;
    case MergeRule::exp_of_difference: {
      const double excess = largest_rise(row, order) - largest_exponent(row.contract);
      if (excess < -2) return;
      expected.set_out(Expected::of_kind(Expected::Kind::anything));
      expected.lse = {{"", Expected::of_kind(excess > 1 ? Expected::Kind::not_finite
                                                        : Expected::Kind::anything)}};
      return;
    }
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
    default:
      return;
  }
  weigh(row, weight, std::vector<double>(weight.size(), error), expected);
  lse_forms(lse, error + combination_budget(row), expected);
}

}  // namespace

std::function<void(const RowMaterial&, ExpectedRow&)> merged(MergeRule rule) {
  return
      [rule](const RowMaterial& row, ExpectedRow& expected) { combine_merge(rule, row, expected); };
}

}  // namespace ringproof::oracle
