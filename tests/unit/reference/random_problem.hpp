// Random attention problems over every forward semantics, for any number type.
// A Description holds integers only, so RapidCheck can draw, print and shrink it; build() turns it
// into tensors of small dyadic numbers (for Exact: integers), drawn from the description's own
// seed.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <random>
#include <vector>

#include "reference/problem.hpp"
#include "tests/unit/reference/exact.hpp"

namespace ringproof::test {

using reference::Alignment;
using reference::Index;
using reference::Problem;
using reference::View;

struct Description {
  Index batches = 1, kv_heads = 1, group = 1, queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  bool causal = false, bottom_right = false;
  Index window_left = -1, window_right = -1;
  bool bias = false, mask = false, alibi = false, sinks = false, key_lengths = false;
  bool documents = false, positions = false, scales = false;
  unsigned seed = 0;
};

inline std::ostream& operator<<(std::ostream& stream, const Description& d) {
  return stream << "B " << d.batches << " Hkv " << d.kv_heads << " group " << d.group << " Nq "
                << d.queries << " Nk " << d.keys << " D " << d.head_dim << " Dv " << d.value_dim
                << " causal " << d.causal << " bottom_right " << d.bottom_right << " window ["
                << d.window_left << ", " << d.window_right << "] bias " << d.bias << " mask "
                << d.mask << " alibi " << d.alibi << " sinks " << d.sinks << " key_lengths "
                << d.key_lengths << " documents " << d.documents << " positions " << d.positions
                << " scales " << d.scales << " seed " << d.seed;
}

/// A problem together with the tensors it looks at.
template <class Real>
struct OwnedProblem {
  Problem<Real> problem;
  std::vector<Real> q, k, v, bias, slopes, sinks, q_scale, k_scale, v_scale;
  std::vector<std::uint8_t> mask;
  std::vector<Index> key_lengths, position_q, position_k;
  std::vector<std::int32_t> document_q, document_k;

  OwnedProblem() = default;
  OwnedProblem(const OwnedProblem&) = delete;  // the views must keep looking at these vectors
  OwnedProblem(OwnedProblem&&) = default;      // moving a vector does not move its elements
};

/// Draws tensors; numbers are integers in [-limit, limit], for inexact types divided by `fraction`.
template <class Real>
struct Draw {
  std::mt19937_64 engine;
  long long integer(long long low, long long high) {
    return low + static_cast<long long>(engine() % static_cast<unsigned long long>(high - low + 1));
  }
  Real number(long long limit, long long fraction) {
    if constexpr (std::is_same_v<Real, Exact>) {
      return Real(integer(-limit, limit));
    } else {
      return Real(integer(-limit * fraction, limit * fraction)) / Real(fraction);
    }
  }
  std::vector<Real> numbers(Index count, long long limit) {
    std::vector<Real> result;
    for (Index n = 0; n < count; ++n) result.push_back(number(limit, 64));
    return result;
  }
};

template <class Real>
OwnedProblem<Real> build(const Description& d) {
  Draw<Real> draw{std::mt19937_64(d.seed)};
  OwnedProblem<Real> owned;
  Problem<Real>& p = owned.problem;
  const Index H = d.kv_heads * d.group;
  p.batches = d.batches, p.heads = H, p.kv_heads = d.kv_heads;
  p.queries = d.queries, p.keys = d.keys, p.head_dim = d.head_dim, p.value_dim = d.value_dim;
  owned.q = draw.numbers(d.batches * H * d.queries * d.head_dim, 2);
  owned.k = draw.numbers(d.batches * d.kv_heads * d.keys * d.head_dim, 2);
  owned.v = draw.numbers(d.batches * d.kv_heads * d.keys * d.value_dim, 4);
  p.q = reference::row_major<Real>(owned.q, {d.batches, H, d.queries, d.head_dim});
  p.k = reference::row_major<Real>(owned.k, {d.batches, d.kv_heads, d.keys, d.head_dim});
  p.v = reference::row_major<Real>(owned.v, {d.batches, d.kv_heads, d.keys, d.value_dim});
  p.causal = d.causal;
  p.window_left = d.window_left, p.window_right = d.window_right;
  const Alignment alignment = d.bottom_right ? Alignment::bottom_right : Alignment::top_left;
  p.offset = reference::query_offset(alignment, d.queries, d.keys);

  if (d.bias) {
    for (Index n = 0; n < H * d.queries * d.keys; ++n) {
      owned.bias.push_back(draw.integer(0, 7) == 0 ? reference::Number<Real>::minus_infinity()
                                                   : draw.number(3, 64));
    }
    p.bias = reference::row_major<Real>(owned.bias, {1, H, d.queries, d.keys});
  }
  if (d.mask) {
    for (Index n = 0; n < d.batches * d.queries * d.keys; ++n) {
      owned.mask.push_back(draw.integer(0, 2) != 0);
    }
    p.mask = reference::row_major<std::uint8_t>(owned.mask, {d.batches, 1, d.queries, d.keys});
  }
  if (d.alibi) {
    owned.slopes = draw.numbers(H, 1);
    p.alibi_slopes = reference::row_major<Real>(owned.slopes, {1, H, 1, 1});
  }
  if (d.sinks) {
    owned.sinks = draw.numbers(H, 6);
    p.sinks = reference::row_major<Real>(owned.sinks, {1, H, 1, 1});
  }
  if (d.key_lengths) {
    for (Index b = 0; b < d.batches; ++b) owned.key_lengths.push_back(draw.integer(0, d.keys));
    p.key_lengths = reference::row_major<Index>(owned.key_lengths, {d.batches, 1, 1, 1});
  }
  if (d.documents) {
    for (Index i = 0; i < d.queries; ++i) owned.document_q.push_back(draw.integer(-1, 2));
    for (Index j = 0; j < d.keys; ++j) owned.document_k.push_back(draw.integer(-1, 2));
    p.document_q = reference::row_major<std::int32_t>(owned.document_q, {1, 1, d.queries, 1});
    p.document_k = reference::row_major<std::int32_t>(owned.document_k, {1, 1, d.keys, 1});
  }
  if (d.positions) {
    for (Index i = 0; i < d.queries; ++i) owned.position_q.push_back(draw.integer(-4, 20));
    for (Index j = 0; j < d.keys; ++j) owned.position_k.push_back(draw.integer(-4, 20));
    p.position_q = reference::row_major<Index>(owned.position_q, {1, 1, d.queries, 1});
    p.position_k = reference::row_major<Index>(owned.position_k, {1, 1, d.keys, 1});
  }
  if (d.scales) {
    owned.q_scale = draw.numbers(H, 2);            // a factor per head
    owned.k_scale = draw.numbers(d.keys, 2);       // per token
    owned.v_scale = draw.numbers(d.value_dim, 2);  // per channel
    p.q_scale.view = reference::row_major<Real>(owned.q_scale, {1, H, 1, 1});
    p.q_scale.block = {d.batches, 1, d.queries, d.head_dim};
    p.k_scale.view = reference::row_major<Real>(owned.k_scale, {1, 1, d.keys, 1});
    p.k_scale.block = {d.batches, d.kv_heads, 1, d.head_dim};
    p.v_scale.view = reference::row_major<Real>(owned.v_scale, {1, 1, 1, d.value_dim});
    p.v_scale.block = {d.batches, d.kv_heads, d.keys, 1};
  }
  return owned;
}

}  // namespace ringproof::test

namespace rc {

template <>
struct Arbitrary<ringproof::test::Description> {
  static Gen<ringproof::test::Description> arbitrary() {
    using D = ringproof::test::Description;
    using ringproof::test::Index;
    const auto size = [](Index low, Index high) { return gen::inRange<Index>(low, high + 1); };
    return gen::build<D>(gen::set(&D::batches, size(1, 2)), gen::set(&D::kv_heads, size(1, 2)),
                         gen::set(&D::group, size(1, 2)), gen::set(&D::queries, size(0, 9)),
                         gen::set(&D::keys, size(0, 9)), gen::set(&D::head_dim, size(1, 3)),
                         gen::set(&D::value_dim, size(1, 3)), gen::set(&D::causal),
                         gen::set(&D::bottom_right), gen::set(&D::window_left, size(-1, 5)),
                         gen::set(&D::window_right, size(-1, 5)), gen::set(&D::bias),
                         gen::set(&D::mask), gen::set(&D::alibi), gen::set(&D::sinks),
                         gen::set(&D::key_lengths), gen::set(&D::documents),
                         gen::set(&D::positions), gen::set(&D::scales), gen::set(&D::seed));
  }
};

}  // namespace rc
