#include "oracle/diagnose/gradient_additions.hpp"

#include <cmath>

#include "oracle/diagnose/gradient_row.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Covers the rounding of the evaluation in binary64, as for dq, dk and dv.
constexpr double kEvaluation = 0x1p-36;

}  // namespace

AdditionSums::AdditionSums(const BiasShape& shape, std::optional<std::int64_t> only)
    : shape_(shape), only_(only), count_(elements(shape)) {
  value_.assign(only ? 1 : size(count_), 0.0);
  bound_ = value_;
}

std::int64_t AdditionSums::number(const BiasShape& shape, const PairPlace& at) {
  const auto index = [&](std::size_t axis, std::int64_t n) { return shape[axis] == 1 ? 0 : n; };
  return ((index(0, at.b) * shape[1] + index(1, at.h)) * shape[2] + index(2, at.i)) * shape[3] +
         index(3, at.j);
}

void AdditionSums::add(std::int64_t n, double weight, double value, double bound) {
  value_[place(n)] += weight * value;
  bound_[place(n)] += std::abs(weight) * bound;
}

void AdditionSums::add_bias(const GradientPairs& pairs, const GradientRule& rule) {
  for (const HeadPairs& head : pairs.heads) {
    for (std::int64_t i = 0; i < pairs.queries; ++i) {
      std::optional<RowOfPairs> row;  // made when the first pair of the row counts
      for (std::int64_t j = 0; j < pairs.keys; ++j) {
        const std::size_t cell = size(i * pairs.keys + j);
        if (head.p[cell] == 0) continue;
        const PairPlace pair{pairs.b, head.h, i, j};
        const std::int64_t n = number(shape_, rule.bias_place ? rule.bias_place(pair) : pair);
        if (!wanted(n)) continue;
        const double weight = rule.factor_bias * (rule.counts_bias ? rule.counts_bias(pair) : 1.0);
        if (weight == 0) continue;
        if (!row) row.emplace(pairs, head, rule, i);
        row->pair(j);
        add(n, weight, row->bias.value,
            (head.budget_bias[cell] + kEvaluation) * row->bias.absolute);
      }
    }
  }
}

void AdditionSums::add_sinks(const GradientPairs& pairs, const GradientRule& rule) {
  for (const HeadPairs& head : pairs.heads) {
    for (std::int64_t i = 0; i < pairs.queries; ++i) {
      const PairPlace query{pairs.b, head.h, i, 0};
      const std::int64_t n = number(shape_, rule.sink_place ? rule.sink_place(query) : query);
      if (!wanted(n)) continue;
      const double weight = rule.factor_sinks * (rule.counts_sinks ? rule.counts_sinks(query) : 1);
      const Term term = RowOfPairs(pairs, head, rule, i).sink();
      add(n, weight, term.value, (head.budget_sink[size(i)] + kEvaluation) * term.absolute);
    }
  }
}

}  // namespace ringproof::oracle
