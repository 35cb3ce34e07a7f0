// Summing wrong gradients (gradient_mutant.hpp).
#include "oracle/diagnose/gradient_mutant.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/diagnose/gradient_sums.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Adds the other gradient; each of the two may have been stored before, if there are two.
void add_other(const GradientPairs& pairs, double times, bool two, const std::vector<double>& other,
               const std::vector<double>& other_bound, std::vector<double>& values,
               std::vector<double>& bounds) {
  if (times == 0) return;
  const auto stored = [&](double value, double bound) {
    if (!two) return bound;
    return bound + pairs.output_unit * (std::abs(value) + bound) + pairs.output_underflow;
  };
  for (std::size_t n = 0; n < values.size(); ++n) {
    bounds[n] =
        (stored(values[n], bounds[n]) + std::abs(times) * stored(other[n], other_bound[n])) *
        (1 + 0x1p-50);
    values[n] += times * other[n];
    bounds[n] += 0x1p-52 * std::abs(values[n]);
  }
}

/// A factor that is known up to its spread.
void spread(double relative, const std::vector<double>& values, std::vector<double>& bounds) {
  if (relative == 0) return;
  for (std::size_t n = 0; n < bounds.size(); ++n) {
    bounds[n] += relative * (std::abs(values[n]) + bounds[n]);
  }
}

/// What is stored at each key comes from another key, or from the other gradient.
void place(const GradientPairs& pairs, const GradientRule& rule, WrongGradients& g) {
  const auto move = [&](const auto& from_key, std::vector<double>& values, std::int64_t columns) {
    if (!from_key) return;
    std::vector<double> moved(values.size());
    for (std::int64_t j = 0; j < pairs.keys; ++j) {
      const std::int64_t from = from_key(j);
      for (std::int64_t d = 0; from >= 0 && d < columns; ++d) {
        moved[size(j * columns + d)] = values[size(from * columns + d)];
      }
    }
    values = std::move(moved);
  };
  const bool alike = pairs.head_dim == pairs.value_dim;  // else no kernel can mix them up
  if (rule.exchanged && alike) {
    std::swap(g.dk, g.dv);
    std::swap(g.bound_k, g.bound_v);
  }
  if (alike && adds_gradients(rule)) {
    const std::vector<double> dk = g.dk, bound_k = g.bound_k;
    add_other(pairs, rule.dv_in_dk, rule.factor_k != 0, g.dv, g.bound_v, g.dk, g.bound_k);
    add_other(pairs, rule.dk_in_dv, rule.factor_v != 0, dk, bound_k, g.dv, g.bound_v);
  }
  move(rule.dk_from, g.dk, pairs.head_dim);
  move(rule.dk_from, g.bound_k, pairs.head_dim);
  move(rule.dv_from, g.dv, pairs.value_dim);
  move(rule.dv_from, g.bound_v, pairs.value_dim);
}

}  // namespace

PairWindow window_of_key(const GradientMutant& mutant, std::int64_t j) {
  PairWindow window;
  window.keys.push_back(j);
  for (const auto& from : {mutant.rule.dk_from, mutant.rule.dv_from}) {
    const std::int64_t key = from ? from(j) : j;
    const bool known = std::find(window.keys.begin(), window.keys.end(), key) != window.keys.end();
    if (key >= 0 && !known) window.keys.push_back(key);
  }
  return window;
}

WrongGradients wrong_gradients(const GradientPairs& pairs, const GradientMutant& mutant,
                               const PairWindow& window) {
  const GradientRule& rule = mutant.rule;
  WrongSums sums(pairs, rule);
  for (std::size_t n = 0; n < pairs.heads.size(); ++n) {
    for (std::int64_t i = 0; i < pairs.queries; ++i) {
      const bool this_row = window.row && *window.row == std::pair(pairs.heads[n].h, i);
      if (!window.whole() && !this_row && window.keys.empty()) continue;
      sums.add_row(n, i, window.whole() || this_row ? nullptr : &window.keys);
    }
  }
  if (window.whole() || !window.keys.empty()) sums.finish(window.whole() ? nullptr : &window.keys);
  WrongGradients result = std::move(sums.sums);
  spread(rule.spread_q, result.dq, result.bound_q);
  spread(rule.spread_k, result.dk, result.bound_k);
  spread(rule.spread_v, result.dv, result.bound_v);
  place(pairs, rule, result);
  return result;
}

}  // namespace ringproof::oracle
