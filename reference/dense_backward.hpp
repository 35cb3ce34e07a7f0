// The gradients by their definition: the derivative of dense softmax attention (2), one query row
// at a time, from all of its probabilities. Nothing is recomputed from an LSE and no block travels;
// D is the mean of dP under P, not dO.out. The ring must give the same function by another road.
#pragma once

#include "reference/backward.hpp"

namespace ringproof::reference {

/// One query row: its visible keys, their probabilities and the sink's, by (2).
template <class Real>
struct DenseRow {
  std::vector<Index> keys;
  std::vector<Real> dot_products, P;  // of the visible keys
  Real sink{0};                       // the sink's probability
};

template <class Real>
DenseRow<Real> dense_probabilities(const Problem<Real>& problem, const QueryRow& query) {
  DenseRow<Real> row;
  std::vector<Real> scores;
  for (Index j = 0; j < problem.keys; ++j) {
    if (!visible(problem, query, j)) continue;
    Real product{0};
    for (Index d = 0; d < problem.head_dim; ++d) {
      product = product + dequantised(problem.q, problem.q_scale, query.b, query.h, query.i, d) *
                              dequantised(problem.k, problem.k_scale, query.b,
                                          problem.kv_head(query.h), j, d);
    }
    row.keys.push_back(j);
    row.dot_products.push_back(product);
    scores.push_back(score(problem, query, j, product));
  }
  const Real sink =
      problem.sinks ? problem.sinks(0, query.h, 0, 0) : Number<Real>::minus_infinity();
  Real m = sink;
  for (const Real& s : scores) m = larger(m, s);
  if (is_minus_infinity(m)) return row;
  Real l = Number<Real>::exponential(sink - m);
  row.sink = l;
  for (const Real& s : scores) {
    row.P.push_back(Number<Real>::exponential(s - m));
    l = l + row.P.back();
  }
  for (Real& p : row.P) p = p / l;
  row.sink = row.sink / l;
  return row;
}

/// Adds what one query row contributes to every gradient.
template <class Real>
void add_dense_row(const Problem<Real>& problem, const Upstream<Real>& upstream,
                   const QueryRow& query, Gradients<Real>& sum) {
  const auto [b, h, i] = query;
  const Index kv = problem.kv_head(h), D = problem.head_dim, Dv = problem.value_dim;
  const DenseRow<Real> row = dense_probabilities(problem, query);
  const std::size_t n = row.keys.size();
  const auto dout = [&](Index c) { return upstream.dout ? upstream.dout(b, h, i, c) : Real{0}; };
  const Real dlse = upstream.dlse ? upstream.dlse(b, h, i, 0) : Real{0};

  std::vector<Real> dP(n, Real{0});  // the derivative by a probability, out = sum P v
  Real mean{0};
  for (std::size_t key = 0; key < n; ++key) {
    for (Index c = 0; c < Dv; ++c) {
      dP[key] =
          dP[key] + dout(c) * dequantised(problem.v, problem.v_scale, b, kv, row.keys[key], c);
    }
    mean = mean + row.P[key] * dP[key];
  }
  for (std::size_t key = 0; key < n; ++key) {
    const Index j = row.keys[key];
    const Index kv_row = (b * problem.kv_heads + kv) * problem.keys + j;
    const Index q_row = (b * problem.heads + h) * problem.queries + i;
    for (Index c = 0; c < Dv; ++c) {
      sum.dv[kv_row * Dv + c] = sum.dv[kv_row * Dv + c] + row.P[key] * dout(c);
    }
    const Real dS = row.P[key] * (dP[key] - mean + dlse);  // the softmax's own derivative
    if (problem.bias) sum.dbias.add(b, h, i, j, dS);
    const Real by_dot = dS * score_slope(problem, row.dot_products[key]) * problem.scale;
    for (Index d = 0; d < D; ++d) {
      Real& dq = sum.dq[q_row * D + d];
      Real& dk = sum.dk[kv_row * D + d];
      dq = dq + by_dot * dequantised(problem.k, problem.k_scale, b, kv, j, d);
      dk = dk + by_dot * dequantised(problem.q, problem.q_scale, b, h, i, d);
    }
  }
  if (problem.sinks) sum.dsinks[h] = sum.dsinks[h] + row.sink * (dlse - mean);
}

/// The definition. Gradients are of sum out.dout + sum lse.dlse.
template <class Real>
Gradients<Real> dense_backward(const Problem<Real>& problem, const Upstream<Real>& upstream) {
  Gradients<Real> sum = no_gradients(problem);
  for (Index b = 0; b < problem.batches; ++b) {
    for (Index h = 0; h < problem.heads; ++h) {
      for (Index i = 0; i < problem.queries; ++i) {
        add_dense_row(problem, upstream, {b, h, i}, sum);
      }
    }
  }
  return sum;
}

}  // namespace ringproof::reference
