// One attention problem: the tensors, and everything that decides who attends to whom.
// A plain value that owns no tensor. It is what all tiers agree on: the description (sizes,
// positions, documents, masks) is known to every rank, while q, k and v are what a ring deals out
// (shard.hpp).
//
//   Problem<float> problem{.queries = 8, .keys = 8, .head_dim = 4, .value_dim = 4,
//                          .q = row_major<float>(q, {1, 1, 8, 4}), .k = ..., .v = ...,
//                          .scale = 0.5f, .causal = true};
//   Answer<float> answer = dense_attention(problem);
#pragma once

#include "reference/mask.hpp"
#include "reference/tensor.hpp"

namespace ringproof::reference {

/// What `out` holds for a query that sees nothing, neither a key nor a sink.
enum class EmptyRow { zero, nan };

/// Dequantisation factors: `block` elements along each axis share one factor.
template <class Real>
struct Factors {
  View<Real> view{};  // absent: every factor is 1
  std::array<Index, 4> block{1, 1, 1, 1};
};

template <class Real>
struct Problem {
  Index batches = 1, heads = 1, kv_heads = 1;  // heads is a multiple of kv_heads
  Index queries = 0, keys = 0;                 // Nq, Nk
  Index head_dim = 0, value_dim = 0;           // D, Dv

  View<Real> q{};  // [B, H, Nq, D]
  View<Real> k{};  // [B, Hkv, Nk, D]
  View<Real> v{};  // [B, Hkv, Nk, Dv]
  Factors<Real> q_scale{}, k_scale{}, v_scale{};

  Real scale{1};              // multiplies q.k
  Real softcap{0};            // 0: off
  View<Real> bias{};          // [B, H, Nq, Nk]
  View<Real> alibi_slopes{};  // [B, H, 1, 1]
  View<Real> sinks{};         // [1, H, 1, 1]

  View<std::uint8_t> mask{};  // [B, H, Nq, Nk], non-zero: may attend
  bool causal = false;
  Index window_left = -1, window_right = -1;  // inclusive; -1: no limit
  Index offset = 0;           // position of query i is i + offset, unless given by position_q
  View<Index> key_lengths{};  // [B, 1, 1, 1]
  View<Index> position_q{}, position_k{};         // [B, 1, Nq, 1], [B, 1, Nk, 1]
  View<std::int32_t> document_q{}, document_k{};  // [B, 1, Nq, 1], [B, 1, Nk, 1]
  EmptyRow empty_row = EmptyRow::zero;

  /// Grouped queries: the head of k and v that query head h reads.
  Index kv_head(Index h) const { return h / (heads / kv_heads); }
};

/// The answer: out [B, H, Nq, Dv] and the logarithm of the denominator, lse [B, H, Nq].
template <class Real>
struct Answer {
  std::vector<Real> out, lse;
};

/// What `out` holds where a query sees nothing. A sink is something: its value is zero.
template <class Real>
Real empty_output(const Problem<Real>& problem) {
  const bool nan = problem.empty_row == EmptyRow::nan && !problem.sinks;
  return nan ? Number<Real>::not_a_number() : Real{0};
}

/// One query row of one head of one batch.
struct QueryRow {
  Index b = 0, h = 0, i = 0;
};

template <class Real>
Index query_position(const Problem<Real>& problem, Index b, Index i) {
  return problem.position_q ? problem.position_q(b, 0, i, 0) : i + problem.offset;
}

template <class Real>
Index key_position(const Problem<Real>& problem, Index b, Index j) {
  return problem.position_k ? problem.position_k(b, 0, j, 0) : j;
}

/// May the query see key j? A bias of minus infinity hides a key like a mask does.
template <class Real>
bool visible(const Problem<Real>& problem, const QueryRow& query, Index j) {
  const auto [b, h, i] = query;
  const Index position_q = query_position(problem, b, i);
  const Index position_k = key_position(problem, b, j);
  if (problem.document_q &&
      !same_document(problem.document_q(b, 0, i, 0), problem.document_k(b, 0, j, 0))) {
    return false;
  }
  if (problem.key_lengths && !inside_length(j, problem.key_lengths(b, 0, 0, 0))) return false;
  if (problem.mask && problem.mask(b, h, i, j) == 0) return false;
  if (problem.causal && !causal_allows(position_q, position_k)) return false;
  if (!window_allows(position_q, position_k, problem.window_left, problem.window_right)) {
    return false;
  }
  return !problem.bias || problem.bias(b, h, i, j) != Number<Real>::minus_infinity();
}

/// One stored element times its factor.
template <class Real>
Real dequantised(const View<Real>& stored, const Factors<Real>& factors, Index b, Index h, Index n,
                 Index d) {
  if (!factors.view) return stored(b, h, n, d);
  const auto& block = factors.block;
  return stored(b, h, n, d) * factors.view(b / block[0], h / block[1], n / block[2], d / block[3]);
}

}  // namespace ringproof::reference
