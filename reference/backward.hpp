// The backward pass of one rank's queries against one block of keys.
// The forward pass hands over two numbers a row, not the N x N probabilities: the LSE, from which a
// probability is recomputed (21), and the output, whose product with dout stands for a sum over all
// keys (22). So a block can be worked on alone, in any order, like in the forward pass. Where the
// parts of a gradient meet is ring_backward.hpp's matter.
#pragma once

#include "reference/block_attention.hpp"
#include "reference/gradients.hpp"

namespace ringproof::reference {

/// What a rank keeps beside its queries: its rows of dout, and two numbers a row.
template <class Real>
struct UpstreamShard {
  std::vector<Real> dout;   // [B, H, n, Dv]
  std::vector<Real> lse;    // [B, H, n]
  std::vector<Real> delta;  // [B, H, n], D - dL of (22)
};

/// The gradient of one block of keys and values. It travels with the block, and home.
template <class Real>
struct KeyGradient {
  Index origin = 0;
  std::vector<Real> dk;  // [B, Hkv, n, D]
  std::vector<Real> dv;  // [B, Hkv, n, Dv]

  /// Bytes on the wire.
  Index bytes() const { return static_cast<Index>((dk.size() + dv.size()) * sizeof(Real)); }
};

/// The gradients that stay with a rank. The last two are its part of a sum over the ranks, unless
/// the rows of the bias are dealt like the queries.
template <class Real>
struct QueryGradient {
  std::vector<Real> dq;      // [B, H, n, D]
  BiasGradient<Real> dbias;  // the rank's rows, or its part
  std::vector<Real> dsinks;  // [H]
};

template <class Real>
void add_to(std::vector<Real>& sum, const std::vector<Real>& terms) {
  for (std::size_t n = 0; n < sum.size(); ++n) sum[n] = sum[n] + terms[n];
}

template <class Real>
KeyGradient<Real> no_key_gradient(const KeyView<Real>& block) {
  return {block.origin, std::vector<Real>(block.k.size(), Real{0}),
          std::vector<Real>(block.v.size(), Real{0})};
}

template <class Real>
QueryGradient<Real> no_query_gradient(const Problem<Real>& problem,
                                      const QueryShard<Real>& queries) {
  return {std::vector<Real>(queries.q.size(), Real{0}), no_bias_gradient(problem, queries.rows()),
          std::vector<Real>(problem.sinks ? problem.heads : 0, Real{0})};
}

/// D - dL of every row (22): D = dout.out stands for the sum of P dP over all keys of the row. A
/// row that saw nothing contributes nothing, so its output, which may be NaN, is not read.
// [delta]
template <class Real>
std::vector<Real> row_delta(Numbers<Real> dout,    // [rows, Dv]
                            Numbers<Real> out,     // [rows, Dv]
                            Numbers<Real> lse,     // [rows]
                            Numbers<Real> dlse) {  // [rows]
  std::vector<Real> delta(lse.size(), Real{0});
  const std::size_t width = lse.empty() ? 0 : out.size() / lse.size();
  for (std::size_t row = 0; row < lse.size(); ++row) {
    if (is_minus_infinity(lse[row])) continue;
    delta[row] =
        dot<Real>(dout.subspan(row * width, width), out.subspan(row * width, width)) - dlse[row];
  }
  return delta;
}
// [/delta]

/// P of the rows of one head against a block (21); 0 where a key is not seen.
template <class Real>
Matrix<Real> probabilities(const Matrix<Real>& S,
                           Numbers<Real> lse) {  // [rows]
  Matrix<Real> P(S.rows, S.columns);
  for (Index i = 0; i < S.rows; ++i) {
    for (Index j = 0; j < S.columns; ++j) {
      const Real& s = S.row(i)[j];
      P.row(i)[j] = is_minus_infinity(s) ? Real{0} : Number<Real>::exponential(s - lse[i]);
    }
  }
  return P;
}

/// Everything one head of a rank and one head of a block have to say to each other.
template <class Real>
struct HeadViews {
  Numbers<Real> q, dout, lse, delta;  // [n, D], [n, Dv], [n], [n]
  Numbers<Real> k, v;                 // [m, D], [m, Dv]
  std::span<Real> dq, dk, dv;         // as q, k, v
};

/// Adds one head's part of all gradients of a block. An unseen pair is passed over: nothing of its
/// key, not even a NaN, is read.
// [block-backward]
template <class Real>
void add_head_gradients(const Problem<Real>& problem, const Head& head, const KeyView<Real>& block,
                        const Matrix<Real>& S, const HeadViews<Real>& x,
                        BiasGradient<Real>& dbias) {
  const Index D = problem.head_dim, Dv = problem.value_dim;
  const std::vector<Index> keys = global_rows(block.sharding, block.origin);
  const Matrix<Real> P = probabilities(S, x.lse);  // (21)
  for (Index i = 0; i < S.rows; ++i) {
    const auto q_i = x.q.subspan(i * D, D), dO_i = x.dout.subspan(i * Dv, Dv);
    const auto dq_i = x.dq.subspan(i * D, D);
    for (Index j = 0; j < S.columns; ++j) {
      if (is_minus_infinity(S.row(i)[j])) continue;
      const auto k_j = x.k.subspan(j * D, D), v_j = x.v.subspan(j * Dv, Dv);
      const auto dk_j = x.dk.subspan(j * D, D), dv_j = x.dv.subspan(j * Dv, Dv);
      const Real p = P.row(i)[j];
      for (Index c = 0; c < Dv; ++c) dv_j[c] = dv_j[c] + p * dO_i[c];        // (24)
      const Real dS = p * (dot<Real>(dO_i, v_j) - x.delta[i]);               // (23)
      if (problem.bias) dbias.add(head.b, head.h, i, keys[j], dS);           // (25)
      const Real dot_slope = dS * score_slope(problem, q_i, k_j);            // (26)
      for (Index d = 0; d < D; ++d) dq_i[d] = dq_i[d] + dot_slope * k_j[d];  // (27)
      for (Index d = 0; d < D; ++d) dk_j[d] = dk_j[d] + dot_slope * q_i[d];  // (28)
    }
  }
}
// [/block-backward]

/// All heads of a rank against one block. The sums of the block begin at zero and are added to the
/// rank's dq, and returned as the rank's part of the block's dk and dv.
template <class Real>
KeyGradient<Real> backward_block(const Problem<Real>& problem, const QueryShard<Real>& queries,
                                 const UpstreamShard<Real>& upstream,
                                 const std::type_identity_t<KeyView<Real>>& block,
                                 QueryGradient<Real>& home) {
  const Index n = queries.rows(), m = block.rows(), D = problem.head_dim, Dv = problem.value_dim;
  KeyGradient<Real> part = no_key_gradient(block);
  std::vector<Real> dq(home.dq.size(), Real{0});
  for (const Head& head : all_heads(problem)) {
    const Index row = (head.b * problem.heads + head.h) * n;
    const Index key = (head.b * problem.kv_heads + problem.kv_head(head.h)) * m;
    const HeadViews<Real> views{Numbers<Real>(queries.q).subspan(row * D, n * D),
                                Numbers<Real>(upstream.dout).subspan(row * Dv, n * Dv),
                                Numbers<Real>(upstream.lse).subspan(row, n),
                                Numbers<Real>(upstream.delta).subspan(row, n),
                                block.k.subspan(key * D, m * D),
                                block.v.subspan(key * Dv, m * Dv),
                                std::span(dq).subspan(row * D, n * D),
                                std::span(part.dk).subspan(key * D, m * D),
                                std::span(part.dv).subspan(key * Dv, m * Dv)};
    const Matrix<Real> S = scores(problem, head, queries, block);  // (1)
    add_head_gradients(problem, head, block, S, views, home.dbias);
  }
  for (Real& x : dq) x = problem.scale * x;       // the scale of (27), once a sum
  for (Real& x : part.dk) x = problem.scale * x;  // and of (28)
  add_to(home.dq, dq);
  return part;
}

/// Each head's sink is a key with the value zero (29), seen by every row. Called once a rank.
template <class Real>
void add_sink_gradients(const Problem<Real>& problem, const QueryShard<Real>& queries,
                        const UpstreamShard<Real>& upstream, QueryGradient<Real>& home) {
  if (!problem.sinks) return;
  for (const Head& head : all_heads(problem)) {
    const Real sink = problem.sinks(0, head.h, 0, 0);
    if (is_minus_infinity(sink)) continue;
    for (Index i = 0; i < queries.rows(); ++i) {
      const Index row = (head.b * problem.heads + head.h) * queries.rows() + i;
      const Real p = Number<Real>::exponential(sink - upstream.lse[row]);
      home.dsinks[head.h] = home.dsinks[head.h] - p * upstream.delta[row];
    }
  }
}

}  // namespace ringproof::reference
