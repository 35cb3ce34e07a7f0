// Tiled softmaxes with wrong factors or maxima (combine.hpp, OnlineRule).
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/parts.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
  const std::vector<std::size_t> order = present_parts(row, rule.descending);
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

}  // namespace

std::function<void(const RowMaterial&, ExpectedRow&)> online(const OnlineRule& rule) {
  return [rule](const RowMaterial& row, ExpectedRow& expected) {
    combine_online(rule, row, expected);
  };
}

}  // namespace ringproof::oracle
