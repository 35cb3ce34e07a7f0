// Sums over pairs under a rule (gradient_sums.hpp).
#include "oracle/diagnose/gradient_sums.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// Beyond this a bound counts as infinite, and a product with it as no bound.
constexpr double kLargest = 0x1p800;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double weight(const GradientRule::Pair& counts, std::int64_t h, std::int64_t i, std::int64_t j) {
  return counts ? counts(h, i, j) : 1.0;
}

/// Adds a term's value and its share of the bound.
void add_term(const double* row, std::int64_t columns, double value, double error, double* values,
              double* errors) {
  for (std::int64_t d = 0; d < columns; ++d) {
    values[d] += value * row[d];
    errors[d] += error * std::abs(row[d]);
  }
}

}  // namespace

WrongSums::WrongSums(const GradientPairs& pairs, const GradientRule& rule)
    : pairs_(pairs), rule_(rule), budgets_(pairs, rule) {
  const std::int64_t queries = static_cast<std::int64_t>(pairs.heads.size()) * pairs.queries;
  for (auto* array : {&sums.dq, &sums.bound_q}) array->resize(size(queries * pairs.head_dim));
  for (auto* array : {&sums.dk, &sums.bound_k}) array->resize(size(pairs.keys * pairs.head_dim));
  for (auto* array : {&sums.dv, &sums.bound_v}) array->resize(size(pairs.keys * pairs.value_dim));
  mean_key_.resize(size(pairs.head_dim));
  key_.resize(size(pairs.keys));
  const double rows = static_cast<double>(queries), keys = static_cast<double>(pairs.keys);
  sum_of_keys_ = 0x1p-53 * (keys + 8);
  sum_of_rows_ = 0x1p-53 * (rows + 8);
  inflation_ = 1 + 0x1p-30 + 0x1p-52 * (rows + keys);
  scale_q_ = std::abs(pairs.scale * rule.factor_q);
  largest_factor_q_ = underflow_factor(rule.factor_q);
  largest_factor_k_ = underflow_factor(rule.factor_k);
}

double WrongSums::underflow_factor(double factor) const {
  return std::max(1.0, std::abs(pairs_.scale)) * std::max(1.0, std::abs(factor));
}

WrongSums::Key& WrongSums::key(std::int64_t j) {
  Key& one = key_[size(j)];
  if (one.started) return one;
  one.started = true;
  const KeyOfHead& right = pairs_.key[size(j)];
  // Two gradients in one accumulator: the additions and stores of both.
  const bool two = adds_gradients(rule_) && rule_.factor_k != 0 && rule_.factor_v != 0;
  const double more = two ? right.budget_value + pairs_.addition_hat : 0;
  one.relative_k = std::expm1(right.budget_query + budgets_.key + more);
  one.relative_v = std::expm1(right.budget_value + budgets_.value + more);
  one.extra_v = std::expm1(budgets_.value + more);
  return one;
}

/// (32): the factor of |k|, the signed sum that ED multiplies, and the sizes of dS.
void WrongSums::add_query(const RowOfPairs& row, const WrongPair& w, std::int64_t k_row,
                          double weight) {
  const GradientBudget& budget = row.budget();
  const double sign = pairs_.scale * rule_.factor_q * weight, scale = std::abs(sign);
  const double mean = w.x.p * w.x.f * weight;
  const double error = scale * budget.grow_common *
                           (query_gradient_error(budget, w.x, w.grown_query) + w.radius +
                            budget.delta_error * w.x.p * w.x.f * (0x1p-38 + sum_of_keys_)) +
                       largest_factor_q_ * budget.grow_after_query * w.underflow +
                       scale * budget.grow_common * sum_of_keys_ * std::abs(w.ds);
  if (w.unbounded || !(error < kLargest)) {
    unbounded_q_ = true;
    return;
  }
  magnitude_q_ += std::abs(w.ds) + w.radius + w.error + w.underflow;
  const double value = sign * w.ds;
  const double* k = pairs_.k.data() + k_row * pairs_.head_dim;
  double* const mean_key = mean_key_.data();
  for (std::int64_t d = 0; d < pairs_.head_dim; ++d) {
    dq_[d] += value * k[d];
    bound_q_[d] += error * std::abs(k[d]);
    mean_key[d] += mean * k[d];
  }
}

/// (31)
void WrongSums::add_key(const WrongPair& w, const double* q, std::int64_t j, double weight) {
  Key& to = key(j);
  const double sign = pairs_.scale * rule_.factor_k * weight, scale = std::abs(sign);
  const double grow = 1 + to.relative_k;
  const double error =
      scale * (grow * (w.error + w.radius) + (to.relative_k + sum_of_rows_) * std::abs(w.ds)) +
      largest_factor_k_ * grow * w.underflow;
  if (w.unbounded || !(error < kLargest)) {
    to.unbounded_k = true;
    return;
  }
  to.magnitude_k += std::abs(w.ds) + w.radius + w.error + w.underflow;
  add_term(q, pairs_.head_dim, sign * w.ds, error, sums.dk.data() + j * pairs_.head_dim,
           sums.bound_k.data() + j * pairs_.head_dim);
}

/// (30)
void WrongSums::add_value(const RowOfPairs& row, const WrongPair& w, std::int64_t j,
                          double weight) {
  Key& to = key(j);
  const double sign = rule_.factor_v * weight;
  const double grown = w.x.p * (w.in_value + (1 + w.in_value) * to.extra_v);
  const double of_upstream = grown + row.row().lost_dv * (1 + to.relative_v);
  const double error = std::abs(sign) * (of_upstream + w.x.p * (0x1p-38 + sum_of_rows_));
  if (!row.row().bounded || !(error < kLargest)) {
    to.unbounded_v = true;
    return;
  }
  to.magnitude_v += w.x.p + of_upstream;
  add_term(row.upstream(), pairs_.value_dim, sign * w.x.p, error,
           sums.dv.data() + j * pairs_.value_dim, sums.bound_v.data() + j * pairs_.value_dim);
}

void WrongSums::finish_query(const RowOfPairs& row) {
  const GradientBudget& budget = row.budget();
  const std::int64_t D = pairs_.head_dim;
  const double largest = magnitude_q_ * largest_factor_q_ * pairs_.largest_key;
  const bool fits = largest * budget.grow_after_query <= pairs_.limits.sum;  // H1
  const double lost = rule_.factor_q == 0
                          ? 0
                          : largest_factor_q_ * budget.grow_after_query *
                                (row.row().query_underflow + pairs_.sum_underflow * magnitude_q_);
  const double of_delta = scale_q_ * budget.grow_common * budget.delta_error;
  const double common = std::expm1(budget.common);
  for (std::size_t d = 0; d < size(D); ++d) {
    const double bound =
        (bound_q_[d] + of_delta * std::abs(mean_key_[d]) + common * std::abs(dq_[d]) + lost) *
        inflation_;
    bound_q_[d] = !unbounded_q_ && fits && bound < kLargest ? bound : HUGE_VAL;
  }
}

void WrongSums::add_row(std::size_t n, std::int64_t i, const std::vector<std::int64_t>* keys) {
  const HeadPairs& head = pairs_.heads[n];
  const std::int64_t D = pairs_.head_dim;
  const bool of_query = keys == nullptr;  // else its dq would lack pairs
  const std::size_t first = (n * size(pairs_.queries) + size(i)) * size(D);
  dq_ = sums.dq.data() + first;
  bound_q_ = sums.bound_q.data() + first;
  if (of_query) std::fill(mean_key_.begin(), mean_key_.end(), 0.0);
  magnitude_q_ = 0;
  unbounded_q_ = false;
  const RowOfPairs row(pairs_, head, rule_, budgets_, i);
  const std::int64_t count =
      keys == nullptr ? pairs_.keys : static_cast<std::int64_t>(keys->size());
  for (std::int64_t at = 0; at < count; ++at) {
    const std::int64_t j = keys == nullptr ? at : (*keys)[size(at)];
    if (head.pairs[size(i * pairs_.keys + j)].p == 0) continue;
    const WrongPair pair = row.pair(j);
    const std::int64_t k_row = rule_.k_row ? rule_.k_row(i, j) : j;
    const double q = weight(rule_.counts_q, head.h, i, j);
    const double k = weight(rule_.counts_k, head.h, i, j);
    const double v = weight(rule_.counts_v, head.h, i, j);
    if (of_query && q * rule_.factor_q != 0 && k_row >= 0) add_query(row, pair, k_row, q);
    if (k * rule_.factor_k != 0) add_key(pair, head.q.data() + i * D, j, k);
    if (v * rule_.factor_v != 0) add_value(row, pair, j, v);
  }
  if (of_query) finish_query(row);
}

void WrongSums::finish_key(std::int64_t j) {
  const Key& of = key(j);
  const double N = pairs_.key[size(j)].underflow, eta = pairs_.sum_underflow;
  const auto close = [&](std::vector<double>& bounds, std::int64_t columns, double lost, bool known,
                         double factor) {
    double* const bound = bounds.data() + j * columns;
    for (std::int64_t d = 0; factor != 0 && d < columns; ++d) {
      const double closed = (bound[d] + lost) * inflation_;
      bound[d] = known && closed < kLargest ? closed : HUGE_VAL;
    }
  };
  const double largest_k = largest_factor_k_ * of.magnitude_k * pairs_.largest_query;
  const bool k_fits = largest_k * (1 + of.relative_k) <= pairs_.limits.sum;
  const double upstream = rule_.ones_for_dout ? 1 : pairs_.largest_upstream;
  const double factor_v = std::max(1.0, std::abs(rule_.factor_v));
  const double largest_v = factor_v * of.magnitude_v * upstream;
  const bool v_fits = largest_v * (1 + of.relative_v) <= pairs_.limits.sum;
  close(sums.bound_k, pairs_.head_dim,
        largest_factor_k_ * (1 + of.relative_k) * (N + eta * of.magnitude_k),
        k_fits && !of.unbounded_k, rule_.factor_k);
  close(sums.bound_v, pairs_.value_dim, factor_v * (1 + of.relative_v) * (N + eta * of.magnitude_v),
        v_fits && !of.unbounded_v, rule_.factor_v);
}

void WrongSums::finish(const std::vector<std::int64_t>* keys) {
  if (keys != nullptr) {
    for (const std::int64_t j : *keys) finish_key(j);
    return;
  }
  for (std::int64_t j = 0; j < pairs_.keys; ++j) finish_key(j);
}

}  // namespace ringproof::oracle
