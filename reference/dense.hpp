// Dense softmax attention, the definition itself (2): all scores of a row, their maximum, their
// weights.
//   out = sum_j exp(s_j - m) v_j / sum_j exp(s_j - m)    for any m (3) (C2); the maximum is safe
// Nothing is streamed here. The ring must give the same function by another road (C19).
#pragma once

#include "reference/score.hpp"

namespace ringproof::reference {

/// Row i of head h of batch b: out [Dv], and the return value is the LSE.
template <class Real>
Real dense_row(const Problem<Real>& problem, const QueryRow& query, std::span<Real> out) {
  const auto [b, h, i] = query;
  const Index kv = problem.kv_head(h);
  std::vector<Index> keys;  // the visible ones
  for (Index j = 0; j < problem.keys; ++j) {
    if (visible(problem, query, j)) keys.push_back(j);
  }

  std::vector<Real> scores;  // of the visible keys, in their order
  for (const Index j : keys) {
    Real product{0};
    for (Index d = 0; d < problem.head_dim; ++d) {
      product = product + dequantised(problem.q, problem.q_scale, b, h, i, d) *
                              dequantised(problem.k, problem.k_scale, b, kv, j, d);
    }
    scores.push_back(score(problem, query, j, product));
  }
  if (problem.sinks && !is_minus_infinity(problem.sinks(0, h, 0, 0))) {
    scores.push_back(problem.sinks(0, h, 0, 0));  // one more key, without a value
  }
  if (scores.empty()) {
    for (Real& component : out) component = empty_output(problem);
    return Number<Real>::minus_infinity();
  }

  Real m = scores.front();
  for (const Real& s : scores) m = larger(m, s);
  Real l{0};
  for (const Real& s : scores) l = l + Number<Real>::exponential(s - m);
  for (Index c = 0; c < problem.value_dim; ++c) {
    Real o{0};
    for (std::size_t n = 0; n < keys.size(); ++n) {
      o = o + Number<Real>::exponential(scores[n] - m) *
                  dequantised(problem.v, problem.v_scale, b, kv, keys[n], c);
    }
    out[c] = o / l;
  }
  return m + Number<Real>::logarithm(l);
}

template <class Real>
Answer<Real> dense_attention(const Problem<Real>& problem) {
  const Index rows = problem.batches * problem.heads * problem.queries;
  Answer<Real> answer{std::vector<Real>(rows * problem.value_dim), std::vector<Real>(rows)};
  Index row = 0;
  for (Index b = 0; b < problem.batches; ++b) {
    for (Index h = 0; h < problem.heads; ++h) {
      for (Index i = 0; i < problem.queries; ++i, ++row) {
        const auto out = std::span(answer.out).subspan(row * problem.value_dim, problem.value_dim);
        answer.lse[row] = dense_row(problem, {b, h, i}, out);
      }
    }
  }
  return answer;
}

}  // namespace ringproof::reference
