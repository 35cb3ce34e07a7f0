// Collecting the pairs (gradient_pairs.hpp).
#include "oracle/diagnose/gradient_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/accumulator.hpp"
#include "oracle/contract/output_format.hpp"
#include "oracle/judge/gradient_judge.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The truth promises nothing of smaller probabilities; they count as this one, and the difference
/// as an error.
constexpr double kSmallest = 0x1p-980;

/// The smallest binary32 number that is not below x >= 0.
float upwards(double x) {
  const auto near = static_cast<float>(x);
  return near < x ? std::nextafter(near, std::numeric_limits<float>::infinity()) : near;
}

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double x : numbers) largest = std::max(largest, std::abs(x));
  return largest;
}

void copy_rows(const double* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               std::vector<double>& to) {
  to.resize(size(rows * columns));
  for (std::int64_t j = 0; j < rows; ++j) {
    std::copy_n(from + j * stride, columns, to.data() + j * columns);
  }
}

}  // namespace

PairCollector::PairCollector(const Problem& p, const Contract& contract, const GivenForward& given,
                             const BackwardHead& head, std::int64_t b, std::int64_t kv_head)
    : problem_(p),
      contract_(contract),
      given_(given),
      head_(head),
      shape_(contract, p, b, kv_head),
      values_(p, head),
      parts_(shape_, values_) {
  pairs_.b = b;
  pairs_.kv_head = kv_head;
  pairs_.queries = p.queries;
  pairs_.keys = p.keys;
  pairs_.head_dim = p.head_dim;
  pairs_.value_dim = p.value_dim;
  pairs_.scale = p.spec.scale_of(p.head_dim);
  copy_rows(head.keys, head.keys_stride, p.keys, p.head_dim, pairs_.k);
  copy_rows(head.values, head.values_stride, p.keys, p.value_dim, pairs_.v);
  pairs_.value_sum = values_.sum;
  pairs_.value_abs_sum = values_.abs_sum;
  for (std::int64_t j = 0; j < p.keys; ++j) {
    pairs_.key.push_back({.budget_query = std::log1p(shape_.relative_query()[j]),
                          .budget_value = shape_.budget_upstream()[j],
                          .underflow = shape_.underflow(j)});
  }
  pairs_.ones.assign(size(p.value_dim), 1.0);
  const Contract::Backward& backward = contract.backward;
  pairs_.product_hat = hat(contract.softmax.u);
  pairs_.addition_hat =
      hat(backward.ring.acc_u) + hat(std::max(backward.ring.store_u, backward.group_store_u));
  pairs_.cast_hat = hat(contract.p.u);
  pairs_.argument_growth = std::expm1(2 * pairs_.product_hat);
  pairs_.output_unit = output_rounding(contract.out).u;
  pairs_.output_underflow = output_rounding(contract.out).eta;
  pairs_.limits = gradient_limits(contract);
  pairs_.largest_key = head.largest_key;
  pairs_.sum_underflow = shape_.underflow_unit;
}

bool PairCollector::add(const RowTruth& row, const RowGradients& gradients) {
  bound_row_backward(contract_, problem_, given_, head_, row, gradients, bound_, nullptr, nullptr,
                     &parts_);
  if (!bound_.not_applicable.empty()) return false;
  if (row.i == 0) {
    HeadPairs& head = pairs_.heads.emplace_back();
    head.h = row.h;
    head.pairs.resize(size(pairs_.queries * pairs_.keys));
    if (problem_.spec.softcap > 0) head.derivatives.resize(head.pairs.size());
  }
  HeadPairs& head = pairs_.heads.back();
  head.q.insert(head.q.end(), gradients.q.begin(), gradients.q.end());
  head.dout.insert(head.dout.end(), gradients.dout.begin(), gradients.dout.end());
  pairs_.largest_query = std::max(pairs_.largest_query, largest_of(gradients.q));
  pairs_.largest_upstream = std::max(pairs_.largest_upstream, largest_of(gradients.dout));
  head.rows.push_back({.bounded = parts_.bounded,
                       .budget = parts_.budget,
                       .D = gradients.D,
                       .dlse = gradients.dlse,
                       .lost_ds = parts_.lost_ds,
                       .lost_dv = parts_.lost_dv,
                       .query_underflow = parts_.query_underflow,
                       .sink = parts_.sink,
                       .ones = parts_.ones});
  for (std::size_t n = 0; n < parts_.index.size(); ++n) add_pair(head, row, gradients, n);
  return true;
}

void PairCollector::add_pair(HeadPairs& head, const RowTruth& row, const RowGradients& gradients,
                             std::size_t visible) {
  const auto n = size(parts_.index[visible]);
  const std::size_t cell = size(row.i * pairs_.keys + row.keys.first) + n;
  PairOfHead& pair = head.pairs[cell];
  const double p = given_.isolated() ? gradients.p[n] : row.p[n];
  const double lost = p < kSmallest ? kSmallest : 0;
  pair.p = std::max(p, kSmallest);
  pair.dp = gradients.dp[n];
  pair.abs_dp = upwards(gradients.abs_dp[n]);
  if (parts_.bounded) {
    pair.in_ds = upwards((parts_.grown[visible] + lost) / pair.p);
    pair.in_query = upwards((parts_.grown_query[visible] + lost) / pair.p);
    pair.in_value = upwards((parts_.grown_value[visible] + lost) / pair.p);
  }
  if (gradients.factor.empty()) return;
  head.derivatives[cell].f = gradients.factor[n];
  if (parts_.bounded) head.derivatives[cell].error = upwards(parts_.factor_error[visible]);
}

GradientPairs gradient_pairs(const Case& input, const Contract& contract, std::int64_t b,
                             std::int64_t kv_head) {
  const Problem& p = input.problem;
  GradientPairs none{.b = b, .kv_head = kv_head};
  if (p.group() * p.queries * p.keys > kMostPairs) {
    none.not_evaluated = "more pairs of a query and a key than are held in memory";
    return none;
  }
  const Upstream upstream = upstream_of(input, contract);
  const HeadTruth forward(p, b, kv_head, Precision::fast);
  const HeadGradients backward(p, upstream, forward);
  const BackwardHead head(p, backward.keys(), backward.keys_stride(), forward.values(),
                          forward.values_stride());
  PairCollector collector(p, contract, upstream.given, head, b, kv_head);
  std::vector<HeadTruth::RowId> ids;
  for (std::int64_t h = kv_head * p.group(); h < (kv_head + 1) * p.group(); ++h) {
    for (std::int64_t i = 0; i < p.queries; ++i) ids.push_back({h, i});
  }
  RowTruth rows[HeadTruth::kRows];
  RowGradients gradients[HeadTruth::kRows];
  for (std::size_t first = 0; first < ids.size(); first += HeadTruth::kRows) {
    const std::size_t count = std::min<std::size_t>(HeadTruth::kRows, ids.size() - first);
    backward.rows({ids.data() + first, count}, rows, gradients, nullptr);
    for (std::size_t n = 0; n < count; ++n) {
      const auto& [h, i] = ids[first + n];
      if (gradients[n].failed) {
        interval_row_gradients(p, upstream, b, h, i, 128, rows[n], gradients[n], nullptr);
      }
      if (!gradients[n].not_applicable.empty() || gradients[n].failed ||
          !collector.add(rows[n], gradients[n])) {
        none.not_evaluated = "the theory says nothing about a row";
        return none;
      }
    }
  }
  return collector.take();
}

}  // namespace ringproof::oracle
