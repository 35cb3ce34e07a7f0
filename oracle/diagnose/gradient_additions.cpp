#include "oracle/diagnose/gradient_additions.hpp"

#include <cmath>

#include "oracle/contract/accumulator.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

BiasBudget::BiasBudget(const Contract& contract, const Problem& problem, const GradientRule& rule) {
  const GradientSum sum = bias_gradient_sum(contract, problem, rule.pairs_of_place);
  budget = sum.budget + sum_of_hats(contract.backward.grad_store);
  underflow = sum.budget > 0 ? 2 * contract.backward.grad_eta + sum.underflow : 0;
  largest = largest_gradient_sum(contract);
}

AdditionSums::AdditionSums(const BiasShape& shape, BiasBudget bias,
                           std::optional<std::int64_t> only)
    : shape_(shape), bias_(bias), only_(only), count_(elements(shape)) {
  value_.assign(only ? 1 : size(count_), 0.0);
  bound_ = absolute_ = value_;
  terms_.assign(value_.size(), 0);
}

std::int64_t AdditionSums::number(const BiasShape& shape, const PairPlace& at) {
  const auto index = [&](std::size_t axis, std::int64_t n) { return shape[axis] == 1 ? 0 : n; };
  return ((index(0, at.b) * shape[1] + index(1, at.h)) * shape[2] + index(2, at.i)) * shape[3] +
         index(3, at.j);
}

/// `relative`: log budget of what happens to the addend beside its own bound.
void AdditionSums::add(std::int64_t n, double weight, double relative, const Addend& one) {
  if (weight == 0) return;
  const std::size_t at = place(n);
  const double scale = std::abs(weight), grow = std::exp(relative);
  value_[at] += weight * one.value;
  absolute_[at] += scale * std::abs(one.value);
  bound_[at] += grow * (scale * one.error + std::max(1.0, scale) * one.underflow) +
                std::expm1(relative) * scale * std::abs(one.value);
  ++terms_[at];
}

/// With what the sum in binary64 may be off, and the evaluation of the bound itself.
double AdditionSums::bound(std::int64_t n) const {
  const std::size_t at = place(n);
  if (!(absolute_[at] + bound_[at] <= bias_.largest)) return HUGE_VAL;  // H1
  const double terms = static_cast<double>(terms_[at]);
  return (bound_[at] + 0x1p-53 * (terms + 8) * absolute_[at]) * (1 + 0x1p-30 + 0x1p-52 * terms);
}

void AdditionSums::add_bias(const GradientPairs& pairs, const GradientRule& rule) {
  const RuleBudgets budgets(pairs, rule);
  for (const HeadPairs& head : pairs.heads) {
    for (std::int64_t i = 0; i < pairs.queries; ++i) {
      std::optional<RowOfPairs> row;  // made when the first pair of the row counts
      for (std::int64_t j = 0; j < pairs.keys; ++j) {
        if (head.pairs[size(i * pairs.keys + j)].p == 0) continue;
        const PairPlace pair{pairs.b, head.h, i, j};
        const std::int64_t n = number(shape_, rule.bias_place ? rule.bias_place(pair) : pair);
        if (!wanted(n)) continue;
        const double weight = rule.factor_bias * (rule.counts_bias ? rule.counts_bias(pair) : 1.0);
        if (weight == 0) continue;
        if (!row) row.emplace(pairs, head, rule, budgets, i);
        Addend one = row->bias(j);
        one.underflow += bias_.underflow;
        add(n, weight, bias_.budget + budgets.bias, one);
      }
    }
  }
}

void AdditionSums::add_sinks(const GradientPairs& pairs, const GradientRule& rule) {
  const RuleBudgets budgets(pairs, rule);
  for (const HeadPairs& head : pairs.heads) {
    for (std::int64_t i = 0; i < pairs.queries; ++i) {
      const PairPlace query{pairs.b, head.h, i, 0};
      const std::int64_t n = number(shape_, rule.sink_place ? rule.sink_place(query) : query);
      if (!wanted(n)) continue;
      const double weight = rule.factor_sinks * (rule.counts_sinks ? rule.counts_sinks(query) : 1);
      add(n, weight, budgets.sinks, RowOfPairs(pairs, head, rule, budgets, i).sink());
    }
  }
}

}  // namespace ringproof::oracle
