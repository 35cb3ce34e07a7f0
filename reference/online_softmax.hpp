// The online softmax: the state (m, l, o) of one query row (4), and what may be done with it.
//   m = largest score so far,  l = sum exp(s - m),  o = sum exp(s - m) v    (o is not divided by l)
// After any prefix of the keys it is the state of a dense pass over that prefix (C3). Subtracting m
// keeps every weight at most 1 (C25); when a larger maximum arrives, one factor corrects the past
// (C24). absorb() folds a block of keys in, merge() joins two states, finish() divides, once, at
// the end. The order does not matter in real arithmetic (C11): states under merge() are a
// commutative monoid whose neutral element is the state of no key, (-infinity, 0, 0).
#pragma once

#include "reference/tensor.hpp"

namespace ringproof::reference {

template <class Real>
struct RowState {
  Real m = Number<Real>::minus_infinity();
  Real l{0};
  std::vector<Real> o;  // [Dv]

  explicit RowState(Index value_dim) : o(value_dim, Real{0}) {}
};

/// Folds one block of keys into the state. An invisible key has score minus infinity; its value is
/// not read. A block without a visible key leaves the state as it is: that one guard is what the
/// recurrence as printed in the document lacks (C4; absorb_as_listed, below).
// [absorb]
template <class Real>
void absorb(RowState<Real>& state,
            Numbers<Real> scores,    // [n]
            Numbers<Real> values) {  // [n, Dv]
  Real m = state.m;
  for (const Real& s : scores) m = larger(m, s);  // m' = max(m, max_j s_j)   (6)
  if (is_minus_infinity(m)) return;               // nothing seen yet: (-inf) - (-inf) is no number

  const Real alpha = Number<Real>::exponential(state.m - m);  // 0 for the first visible block
  Real l{0};                                                  // the block's own sums, from zero
  std::vector<Real> o(state.o.size(), Real{0});
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (is_minus_infinity(scores[j])) continue;
    const Real weight = Number<Real>::exponential(scores[j] - m);
    l = l + weight;
    for (std::size_t c = 0; c < o.size(); ++c) o[c] = o[c] + weight * values[j * o.size() + c];
  }

  state.l = alpha * state.l + l;  // l' = alpha l + sum_j exp(s_j - m')   (7)
  for (std::size_t c = 0; c < o.size(); ++c) state.o[c] = alpha * state.o[c] + o[c];
  state.m = m;
}
// [/absorb]

/// The same recurrence exactly as the document prints it: no guard, every key takes part. Right as
/// long as some key was seen; before that m' = -infinity, and alpha = exp(m - m') is not a number.
/// It stands here to be read and to be shown failing; nothing but its test calls it.
template <class Real>
void absorb_as_listed(RowState<Real>& state,
                      Numbers<Real> scores,    // [n]
                      Numbers<Real> values) {  // [n, Dv]
  Real m = state.m;
  for (const Real& s : scores) m = larger(m, s);
  const Real alpha = Number<Real>::exponential(state.m - m);
  state.l = alpha * state.l;
  for (Real& component : state.o) component = alpha * component;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const Real weight = Number<Real>::exponential(scores[j] - m);
    state.l = state.l + weight;
    for (std::size_t c = 0; c < state.o.size(); ++c) {
      state.o[c] = state.o[c] + weight * values[j * state.o.size() + c];
    }
  }
  state.m = m;
}

/// A sink is one more key whose value is zero: it enters the denominator only. Called once a row.
template <class Real>
void absorb_sink(RowState<Real>& state, const Real& sink) {
  const Real m = larger(state.m, sink);
  if (is_minus_infinity(m)) return;
  const Real alpha = Number<Real>::exponential(state.m - m);
  state.l = alpha * state.l + Number<Real>::exponential(sink - m);
  for (Real& component : state.o) component = alpha * component;
  state.m = m;
}

/// Joins the states of two disjoint sets of keys. Tiles inside a rank and blocks between ranks are
/// joined by this same function (8): the ring is flash attention one level up (C16).
// [merge]
template <class Real>
RowState<Real> merge(const RowState<Real>& a, const RowState<Real>& b) {
  RowState<Real> joined(static_cast<Index>(a.o.size()));
  joined.m = larger(a.m, b.m);
  if (is_minus_infinity(joined.m)) return joined;
  const Real alpha = Number<Real>::exponential(a.m - joined.m);
  const Real beta = Number<Real>::exponential(b.m - joined.m);
  joined.l = alpha * a.l + beta * b.l;
  for (std::size_t c = 0; c < a.o.size(); ++c) joined.o[c] = alpha * a.o[c] + beta * b.o[c];
  return joined;
}
// [/merge]

/// Has the row seen anything? Whatever it saw, the key of the largest score has weight 1.
template <class Real>
bool is_empty(const RowState<Real>& state) {
  return state.l == Real{0};
}

/// Log of the denominator (9); minus infinity for an empty row.
template <class Real>
Real log_sum_exp(const RowState<Real>& state) {
  return is_empty(state) ? Number<Real>::minus_infinity()
                         : Real(state.m + Number<Real>::logarithm(state.l));
}

/// The final divide (9). `nothing` is what the row's output holds if it saw nothing.
template <class Real>
void finish(const RowState<Real>& state, const Real& nothing, std::span<Real> out) {  // [Dv]
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = is_empty(state) ? nothing : Real(state.o[c] / state.l);
  }
}

/// A finished partial result, as kernels hand it over that normalise at once: out = o / l and the
/// LSE.
template <class Real>
struct NormalizedPartial {
  std::vector<Real> out;  // [Dv]
  Real lse = Number<Real>::minus_infinity();
};

/// Joins normalised partials. Averaging them would be wrong (C20): each forgot how much mass stood
/// under its division. The LSE remembers it (C21): the weights are exp(lse - joined lse) (10).
template <class Real>
NormalizedPartial<Real> merge(const NormalizedPartial<Real>& a, const NormalizedPartial<Real>& b) {
  const Real m = larger(a.lse, b.lse);
  if (is_minus_infinity(m)) return a;
  const Real weight_a = Number<Real>::exponential(a.lse - m);
  const Real weight_b = Number<Real>::exponential(b.lse - m);
  const Real sum = weight_a + weight_b;
  NormalizedPartial<Real> joined{a.out, m + Number<Real>::logarithm(sum)};
  for (std::size_t c = 0; c < a.out.size(); ++c) {
    joined.out[c] = (weight_a * a.out[c] + weight_b * b.out[c]) / sum;
  }
  return joined;
}

}  // namespace ringproof::reference
