// Collecting the pairs (gradient_pairs.hpp).
#include "oracle/diagnose/gradient_pairs.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/judge/gradient_judge.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Sums of absolute values of the terms of each gradient, the measure of its budget.
struct Sizes {
  std::vector<double> k, v;  // [Nk, D], [Nk, Dv]
};

/// The size of p t.
double absolute_bias(double p, const RowGradients& g, std::size_t n, double absolute_D) {
  return p * (g.abs_dp[n] + absolute_D + std::abs(g.dlse));
}

class Collector {
 public:
  Collector(const Case& input, const Contract& contract, GradientPairs& pairs)
      : problem_(input.problem),
        contract_(contract),
        upstream_(upstream_of(input, contract)),
        forward_(problem_, pairs.b, pairs.kv_head, Precision::fast),
        backward_(problem_, upstream_, forward_),
        head_(problem_, backward_.keys(), backward_.keys_stride(), forward_.values(),
              forward_.values_stride()),
        shape_(contract, problem_, pairs.b, pairs.kv_head),
        bounds_(shape_),
        pairs_(pairs) {
    sizes_.k.assign(size(pairs.keys * pairs.head_dim), 0.0);
    sizes_.v.assign(size(pairs.keys * pairs.value_dim), 0.0);
    copy_rows(backward_.keys(), backward_.keys_stride(), pairs.head_dim, pairs.k);
    copy_rows(forward_.values(), forward_.values_stride(), pairs.value_dim, pairs.v);
  }

  void head(HeadPairs& head) {
    const auto cells = size(pairs_.queries * pairs_.keys);
    head.p.assign(cells, 0.0);
    head.factor.assign(cells, 1.0);
    if (problem_.bias) head.budget_bias.assign(cells, 0.0);
    for (std::int64_t i = 0; i < pairs_.queries && pairs_.not_evaluated.empty(); ++i) {
      row(head, i);
    }
  }

  void finish() {
    bounds_.finish();
    pairs_.budget_k.assign(size(pairs_.keys), 0.0);
    pairs_.budget_v.assign(size(pairs_.keys), 0.0);
    for (std::int64_t j = 0; j < pairs_.keys; ++j) {
      for (std::int64_t d = 0; d < pairs_.head_dim; ++d) {
        raise(pairs_.budget_k[size(j)], bounds_.dk(j, d), sizes_.k[size(j * pairs_.head_dim + d)]);
      }
      for (std::int64_t c = 0; c < pairs_.value_dim; ++c) {
        raise(pairs_.budget_v[size(j)], bounds_.dv(j, c), sizes_.v[size(j * pairs_.value_dim + c)]);
      }
    }
  }

 private:
  static void raise(double& budget, double bound, double absolute) {
    if (absolute > 0) budget = std::max(budget, bound / absolute);
  }

  void copy_rows(const double* from, std::int64_t stride, std::int64_t columns,
                 std::vector<double>& to) const {
    to.resize(size(pairs_.keys * columns));
    for (std::int64_t j = 0; j < pairs_.keys; ++j) {
      std::copy_n(from + j * stride, columns, to.data() + j * columns);
    }
  }

  void row(HeadPairs& head, std::int64_t i) {
    const HeadTruth::RowId id{head.h, i};
    backward_.rows({&id, 1}, &row_, &gradients_, nullptr);
    if (gradients_.failed) {
      interval_row_gradients(problem_, upstream_, pairs_.b, head.h, i, 128, row_, gradients_,
                             nullptr);
    }
    if (gradients_.not_applicable.empty() && !gradients_.failed) {
      bound_row_backward(contract_, problem_, upstream_.given, head_, row_, gradients_, bound_,
                         &bounds_);
    }
    if (!gradients_.not_applicable.empty() || gradients_.failed || !bound_.not_applicable.empty()) {
      pairs_.not_evaluated = "the theory says nothing about a row";
      return;
    }
    const GivenForward& given = upstream_.given;
    const std::vector<double>& p = given.isolated() ? gradients_.p : row_.p;
    double absolute_D = 0;
    for (std::int64_t c = 0; c < pairs_.value_dim; ++c) {
      const double exact = row_.empty() ? 0 : row_.out[size(c)].hi;
      const double out = given.isolated() ? given.out.at(pairs_.b, head.h, i, c) : exact;
      head.out.push_back(out);
      head.dout.push_back(gradients_.dout[size(c)]);
      absolute_D += std::abs(out * gradients_.dout[size(c)]);
    }
    head.q.insert(head.q.end(), gradients_.q.begin(), gradients_.q.end());
    head.dlse.push_back(gradients_.dlse);
    head.D.push_back(gradients_.D);
    std::vector<double> absolute_dq(size(pairs_.head_dim));
    for (std::size_t n = 0; n < p.size(); ++n) {
      if (p[n] == 0) continue;
      const std::int64_t j = row_.keys.first + static_cast<std::int64_t>(n);
      head.p[size(i * pairs_.keys + j)] = p[n];
      if (!gradients_.factor.empty()) {
        head.factor[size(i * pairs_.keys + j)] = gradients_.factor[n];
      }
      const double bias = absolute_bias(p[n], gradients_, n, absolute_D);
      if (problem_.bias) {
        raise(head.budget_bias[size(i * pairs_.keys + j)], bound_.dbias[n], bias);
      }
      const double factor = gradients_.factor.empty() ? 1 : std::abs(gradients_.factor[n]);
      const double ds = std::abs(pairs_.scale) * factor * bias;
      for (std::int64_t d = 0; d < pairs_.head_dim; ++d) {
        absolute_dq[size(d)] += ds * std::abs(pairs_.k[size(j * pairs_.head_dim + d)]);
        sizes_.k[size(j * pairs_.head_dim + d)] += ds * std::abs(gradients_.q[size(d)]);
      }
      for (std::int64_t c = 0; c < pairs_.value_dim; ++c) {
        sizes_.v[size(j * pairs_.value_dim + c)] += p[n] * std::abs(gradients_.dout[size(c)]);
      }
    }
    double budget = 0;
    for (std::int64_t d = 0; d < pairs_.head_dim; ++d) {
      raise(budget, bound_.dq[size(d)], absolute_dq[size(d)]);
    }
    head.budget_q.push_back(budget);
    head.p_sink.push_back(gradients_.p_sink);
    double sink = 0;
    raise(sink, bound_.dsink, gradients_.p_sink * (absolute_D + std::abs(gradients_.dlse)));
    head.budget_sink.push_back(sink);
  }

  const Problem& problem_;
  const Contract& contract_;
  Upstream upstream_;
  HeadTruth forward_;
  HeadGradients backward_;
  BackwardHead head_;
  GradientShape shape_;
  GradientBoundSums bounds_;
  GradientPairs& pairs_;
  Sizes sizes_;
  RowTruth row_;
  RowGradients gradients_;
  RowGradientBound bound_;
};

}  // namespace

GradientPairs gradient_pairs(const Case& input, const Contract& contract, std::int64_t b,
                             std::int64_t kv_head) {
  const Problem& p = input.problem;
  GradientPairs pairs{
      .b = b,
      .kv_head = kv_head,
      .queries = p.queries,
      .keys = p.keys,
      .head_dim = p.head_dim,
      .value_dim = p.value_dim,
      .scale = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim)))};
  if (p.group() * p.queries * p.keys > kMostPairs) {
    pairs.not_evaluated = "more pairs of a query and a key than are held in memory";
    return pairs;
  }
  for (std::int64_t h = kv_head * p.group(); h < (kv_head + 1) * p.group(); ++h) {
    pairs.heads.push_back({.h = h});
  }
  Collector collector(input, contract, pairs);
  for (HeadPairs& head : pairs.heads) collector.head(head);
  if (pairs.not_evaluated.empty()) collector.finish();
  return pairs;
}

}  // namespace ringproof::oracle
