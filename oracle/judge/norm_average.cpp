#include "oracle/judge/norm_average.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/accumulator.hpp"
#include "oracle/contract/ring_partition.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// ln sum exp(x), -infinity if every x is.
double log_sum_exp(const std::vector<double>& x) {
  const double largest = x.empty() ? -kInfinity : *std::max_element(x.begin(), x.end());
  if (largest == -kInfinity) return -kInfinity;
  double sum = 0;
  for (const double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

template <class T>
std::vector<T> slice(const std::vector<T>& from, KeyRange range) {
  if (from.empty()) return {};
  return {from.begin() + range.first, from.begin() + range.last};
}

/// Rank of every key of batch entry b: the layout of the spec's ring, else contiguous. By position
/// where positions number the keys once each, else (packed documents) by place in the tensor.
std::vector<std::int64_t> ranks_of_keys(const Problem& problem, std::int64_t b,
                                        std::int64_t ranks) {
  const RingLayout layout = problem.spec.ring ? problem.spec.ring->layout : RingLayout::contiguous;
  const std::int64_t keys = problem.keys;
  const std::int64_t* positions = problem.position_k.data() + b * keys;
  std::vector<std::int64_t> sorted(positions, positions + keys);
  std::sort(sorted.begin(), sorted.end());
  bool numbered_once = true;
  for (std::int64_t j = 0; j < keys; ++j) {
    numbered_once = numbered_once && sorted[static_cast<std::size_t>(j)] == j;
  }
  std::vector<std::int64_t> owner(static_cast<std::size_t>(keys));
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t x = numbered_once ? positions[j] : j;
    owner[static_cast<std::size_t>(j)] = owner_of(layout, x, keys, ranks);
  }
  return owner;
}

}  // namespace

NormAverage::NormAverage(const Problem& problem, const Contract& contract, std::int64_t ranks)
    : problem_(problem), partial_contract_(contract), ranks_(ranks) {
  partial_contract_.partials.count = 1;
  partial_contract_.partials.merge = {Merge::none};
  const double add = hat(contract.pv.u), store = hat(contract.partials.run_u);
  // Each partial is stored, weighted by 1 / P and added; the running average may be stored each
  // time, and the division may be a reciprocal and a product.
  merge_budget_ = hat(contract.partials.o_u) + static_cast<double>(ranks) * (2 * add + store) +
                  2 * hat(std::max(contract.finish.u, contract.pv.u));
  merge_eta_ = static_cast<double>(ranks) * (contract.partials.eta + 2 * contract.pv.eta);
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    owner_.push_back(ranks_of_keys(problem, b, ranks));
  }
}

/// Restricts the row to the keys of one rank, with probabilities normalised over them. False: none.
/// A sink belongs to the partial of rank 0.
bool NormAverage::select_partial(const RowTruth& row, std::int64_t rank) {
  const std::vector<std::int64_t>& owner = owner_[static_cast<std::size_t>(row.b)];
  const auto owned = [&](std::int64_t j) {
    return owner[static_cast<std::size_t>(row.keys.first + j)] == rank &&
           row.score[static_cast<std::size_t>(j)] > -kInfinity;
  };
  KeyRange range{row.keys.size(), 0};  // counts from row.keys.first
  for (std::int64_t j = 0; j < row.keys.size(); ++j) {
    if (!owned(j)) continue;
    range = {std::min(range.first, j), j + 1};
  }
  if (range.last == 0) range = {0, 0};
  RowTruth& partial = partial_;
  partial = RowTruth{};
  partial.b = row.b;
  partial.h = row.h;
  partial.i = row.i;
  partial.keys = {row.keys.first + range.first, row.keys.first + range.last};
  partial.has_sink = row.has_sink && rank == 0;
  partial.sink = row.sink;
  partial.score_radius = row.score_radius;
  partial.dot = slice(row.dot, range);
  partial.abs_dot = slice(row.abs_dot, range);
  partial.capped = slice(row.capped, range);
  partial.bias = slice(row.bias, range);
  partial.alibi = slice(row.alibi, range);
  partial.score = slice(row.score, range);
  partial.log_p = slice(row.log_p, range);
  partial.max_score = partial.has_sink ? row.sink : -kInfinity;
  for (std::int64_t j = range.first; j < range.last; ++j) {
    const auto n = static_cast<std::size_t>(j - range.first);
    if (owned(j)) {
      ++partial.visible;
      partial.max_score = std::max(partial.max_score, partial.score[n]);
      continue;
    }
    partial.score[n] = partial.log_p[n] = -kInfinity;
    for (std::vector<double>* other :
         {&partial.dot, &partial.abs_dot, &partial.capped, &partial.bias, &partial.alibi}) {
      if (!other->empty()) (*other)[n] = 0;
    }
  }
  if (partial.empty()) return false;

  std::vector<double> log_weights = partial.log_p;
  if (partial.has_sink) log_weights.push_back(row.log_p_sink);
  const double log_mass = log_sum_exp(log_weights);
  partial.p.resize(partial.log_p.size());
  for (std::size_t n = 0; n < partial.log_p.size(); ++n) {
    partial.log_p[n] -= log_mass;
    partial.p[n] = std::exp(partial.log_p[n]);
  }
  partial.log_p_sink = row.log_p_sink - log_mass;
  const double magnitude = std::abs(row.lse.hi) + std::abs(log_mass) + 1;
  partial.lse = {row.lse.hi + log_mass, 0,
                 row.lse.radius + 2 * row.score_radius + 0x1p-40 + 0x1p-48 * magnitude};
  return true;
}

/// The partial's own output with a certified radius: the probabilities come from binary64
/// logarithms.
void NormAverage::partial_output(const RowTruth& row, const double* values, std::int64_t stride) {
  RowTruth& partial = partial_;
  const double magnitude =
      std::abs(row.lse.hi) + std::abs(partial.max_score) + std::abs(partial.lse.hi) + 1;
  const double relative = 0x1p-38 + 4 * row.score_radius + 0x1p-48 * magnitude +
                          static_cast<double>(partial.p.size() + 4) * 0x1p-53;
  std::vector<double> sum(static_cast<std::size_t>(problem_.value_dim));
  std::vector<double> absolute(sum.size());
  const double* first = values + (partial.keys.first - row.keys.first) * stride;
  for (std::size_t n = 0; n < partial.p.size(); ++n) {
    if (partial.p[n] == 0) continue;
    const double* value = first + static_cast<std::int64_t>(n) * stride;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      sum[c] += partial.p[n] * value[c];
      absolute[c] += partial.p[n] * std::abs(value[c]);
    }
  }
  partial.out.resize(sum.size());
  for (std::size_t c = 0; c < sum.size(); ++c) {
    partial.out[c] = {sum[c], 0, std::expm1(relative) * absolute[c]};
  }
}

void NormAverage::row(const RowTruth& row, const double* values, std::int64_t stride,
                      AverageOver over, MutantRow& mutant) {
  const auto columns = static_cast<std::size_t>(problem_.value_dim);
  mutant.not_applicable.clear();
  mutant.exact.assign(columns, {});
  mutant.bound.assign(columns, 0);
  const double grow = std::exp(merge_budget_), extra = std::expm1(merge_budget_);
  std::vector<double> magnitude(columns);
  std::int64_t partials = 0;
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    if (!select_partial(row, rank)) continue;
    ++partials;
    partial_output(row, values, stride);
    const double* first = values + (partial_.keys.first - row.keys.first) * stride;
    bound_row(partial_contract_, problem_, partial_, first, stride, false, partial_bound_);
    if (!partial_bound_.not_applicable.empty()) {
      mutant.not_applicable = partial_bound_.not_applicable;
      return;
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const Certified& part = partial_.out[c];
      mutant.exact[c].hi += part.hi;
      magnitude[c] += std::abs(part.hi);
      mutant.exact[c].radius += part.radius;
      mutant.bound[c] += grow * partial_bound_.out[c] + extra * (std::abs(part.hi) + part.radius);
    }
  }
  const auto divisor = static_cast<double>(over == AverageOver::all_ranks ? ranks_ : partials);
  for (std::size_t c = 0; c < columns; ++c) {
    Certified& exact = mutant.exact[c];
    exact.hi /= divisor;
    // The sum and the quotient above are binary64 arithmetic on at most P terms.
    exact.radius =
        exact.radius / divisor + static_cast<double>(ranks_ + 4) * 0x1p-52 * magnitude[c] / divisor;
    mutant.bound[c] = (mutant.bound[c] / divisor + merge_eta_) * (1 + 0x1p-30);
  }
}

}  // namespace ringproof::oracle
