// Upstream gradients in, gradients out: plain values, and nothing about how they are computed.
// All gradients are those of sum out.dout + sum lse.dlse: grouped heads are summed over the group,
// a broadcast bias over its broadcast axes. Where factors dequantise a tensor, its gradient is with
// respect to the dequantised numbers.
#pragma once

#include "reference/problem.hpp"

namespace ringproof::reference {

/// Where the backward pass begins; an absent tensor is zero everywhere.
template <class Real>
struct Upstream {
  View<Real> dout{};  // [B, H, Nq, Dv]
  View<Real> dlse{};  // [B, H, Nq, 1]
};

/// The gradient of the bias, in the bias's own size: an axis that the bias repeats has size 1 and
/// collects the sum over it. Without a bias it is empty.
template <class Real>
struct BiasGradient {
  std::array<Index, 4> size{0, 0, 0, 0};  // of the axes [B, H, Nq, Nk]
  std::vector<Real> data;

  Real& at(Index b, Index h, Index i, Index j) {
    const std::array<Index, 4> index{b, h, i, j};
    Index place = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      place = place * size[axis] + (size[axis] == 1 ? 0 : index[axis]);
    }
    return data[place];
  }
  void add(Index b, Index h, Index i, Index j, const Real& term) {
    Real& sum = at(b, h, i, j);
    sum = sum + term;
  }
};

/// All zero, for `rows` query rows; they are all of the problem's, or those of one rank.
template <class Real>
BiasGradient<Real> no_bias_gradient(const Problem<Real>& problem, Index rows) {
  BiasGradient<Real> zero;
  if (!problem.bias) return zero;
  const std::array<Index, 4> full{problem.batches, problem.heads, rows, problem.keys};
  Index count = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    zero.size[axis] = problem.bias.stride[axis] == 0 ? 1 : full[axis];
    count *= zero.size[axis];
  }
  zero.data.assign(count, Real{0});
  return zero;
}

/// Does every query row have a bias of its own? Then the gradient's rows are dealt like queries.
template <class Real>
bool bias_has_rows(const Problem<Real>& problem) {
  return problem.bias && problem.bias.stride[2] != 0;
}

template <class Real>
struct Gradients {
  std::vector<Real> dq;      // [B, H, Nq, D]
  std::vector<Real> dk;      // [B, Hkv, Nk, D]
  std::vector<Real> dv;      // [B, Hkv, Nk, Dv]
  BiasGradient<Real> dbias;  // as the bias
  std::vector<Real> dsinks;  // [H], empty without sinks
};

template <class Real>
Gradients<Real> no_gradients(const Problem<Real>& problem) {
  const Index q_rows = problem.batches * problem.heads * problem.queries;
  const Index k_rows = problem.batches * problem.kv_heads * problem.keys;
  return {std::vector<Real>(q_rows * problem.head_dim, Real{0}),
          std::vector<Real>(k_rows * problem.head_dim, Real{0}),
          std::vector<Real>(k_rows * problem.value_dim, Real{0}),
          no_bias_gradient(problem, problem.queries),
          std::vector<Real>(problem.sinks ? problem.heads : 0, Real{0})};
}

}  // namespace ringproof::reference
