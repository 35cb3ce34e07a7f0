// The reference tier behind the structs of ringproof.h. It reads tensors itself; what positions,
// documents and layouts mean is the reference's own business.
#pragma once

#include "oracle/case/dtype.hpp"
#include "oracle/ringproof.h"
#include "reference/ring_backward.hpp"

namespace ringproof::suite {

using reference::Index;

/// Which canonical axis [B, H, N, D] each stored axis is.
using Axes = std::vector<std::size_t>;

inline Axes feature_axes(const ringproof_problem& problem) {
  if (problem.layout == RINGPROOF_BNHD) return {0, 2, 1, 3};
  if (problem.layout == RINGPROOF_NHD) return {2, 1, 3};
  return {0, 1, 2, 3};
}
inline Axes row_axes(const ringproof_problem& problem) {
  if (problem.layout == RINGPROOF_NHD) return {1, 2};
  return {0, 1, 2};
}
/// numpy's rule: the last axes of [B, H, Nq, Nk].
inline Axes score_axes(const ringproof_tensor& tensor) {
  Axes axes;
  for (std::int32_t n = 4 - tensor.ndim; n < 4; ++n) axes.push_back(static_cast<std::size_t>(n));
  return axes;
}

inline oracle::DType dtype_of(const ringproof_dtype& type) {
  switch (type.code << 8 | type.bits) {
    case RINGPROOF_F64:
      return oracle::DType::f64;
    case RINGPROOF_F16:
      return oracle::DType::f16;
    case RINGPROOF_BF16:
      return oracle::DType::bf16;
    case RINGPROOF_F8_E4M3:
      return oracle::DType::f8_e4m3;
    case RINGPROOF_F8_E5M2:
      return oracle::DType::f8_e5m2;
    case RINGPROOF_BOOL:
      return oracle::DType::boolean;
    case RINGPROOF_I32:
      return oracle::DType::i32;
    case RINGPROOF_I64:
      return oracle::DType::i64;
    default:
      return oracle::DType::f32;
  }
}

/// Sizes and element strides in canonical axes.
struct Placement {
  std::array<Index, 4> size{1, 1, 1, 1}, stride{};
};
inline Placement placement(const ringproof_tensor& tensor, const Axes& axes) {
  Placement placed;
  Index stride = 1;
  for (std::size_t n = axes.size(); n-- > 0;) {
    placed.size[axes[n]] = tensor.shape[n];
    placed.stride[axes[n]] = tensor.strides != nullptr ? tensor.strides[n] : stride;
    stride *= tensor.shape[n];
  }
  return placed;
}

/// Visits the addresses of a tensor in canonical order.
template <class Visit>
void each_element(const ringproof_tensor& tensor, const Axes& axes, const Visit& visit) {
  const auto [size, stride] = placement(tensor, axes);
  const auto width = static_cast<Index>(oracle::size_of(dtype_of(tensor.dtype)));
  auto* data = static_cast<std::byte*>(tensor.data);
  for (Index b = 0; b < size[0]; ++b) {
    for (Index h = 0; h < size[1]; ++h) {
      for (Index n = 0; n < size[2]; ++n) {
        for (Index d = 0; d < size[3]; ++d) {
          visit(data + width * (b * stride[0] + h * stride[1] + n * stride[2] + d * stride[3]));
        }
      }
    }
  }
}

/// Numbers of a tensor, and the view of them.
template <class T>
struct Loaded {
  std::vector<T> numbers;
  std::array<Index, 4> size{1, 1, 1, 1};

  reference::View<T> view() const { return reference::row_major<T>(numbers, size); }
};

template <class T>
Loaded<T> load(const ringproof_tensor& tensor, const Axes& axes) {
  Loaded<T> loaded;
  if (tensor.data == nullptr) return loaded;
  const oracle::DType type = dtype_of(tensor.dtype);
  loaded.size = placement(tensor, axes).size;
  each_element(tensor, axes, [&](const std::byte* place) {
    if constexpr (std::integral<T>) {
      loaded.numbers.push_back(static_cast<T>(oracle::decode_integer(type, place)));
    } else {
      loaded.numbers.push_back(static_cast<T>(oracle::decode(type, place)));
    }
  });
  return loaded;
}

template <class Real>
void store(const ringproof_tensor& tensor, const Axes& axes, const std::vector<Real>& numbers) {
  if (tensor.data == nullptr) return;
  const oracle::DType type = dtype_of(tensor.dtype);
  auto next = numbers.begin();
  each_element(tensor, axes, [&](std::byte* place) {
    oracle::encode(type, oracle::round_nearest(type, static_cast<double>(*next++)), place);
  });
}

inline reference::RingPlan plan_of(const ringproof_problem& problem) {
  reference::RingPlan plan;
  if (problem.ranks > 1) plan.ranks = problem.ranks;
  if (problem.ring_layout == RINGPROOF_RING_ZIGZAG) plan.layout = reference::Layout::zigzag;
  if (problem.ring_layout == RINGPROOF_RING_STRIPED) plan.layout = reference::Layout::striped;
  if (problem.ring_order == RINGPROOF_RING_UP) plan.direction = reference::Direction::up;
  return plan;
}

/// Everything of one problem, loaded.
template <class Real>
class Call {
 public:
  explicit Call(const ringproof_problem& from)
      : from_(from),
        features_(feature_axes(from)),
        q_(load<Real>(from.q, features_)),
        k_(load<Real>(from.k, features_)),
        v_(load<Real>(from.v, features_)),
        bias_(load<Real>(from.bias, score_axes(from.bias))),
        slopes_(load<Real>(from.alibi_slopes, from.alibi_slopes.ndim == 2 ? Axes{0, 1} : Axes{1})),
        sinks_(load<Real>(from.sinks, {1})),
        dout_(load<Real>(from.dout, features_)),
        dlse_(load<Real>(from.dlse, row_axes(from))),
        mask_(load<std::uint8_t>(from.mask, score_axes(from.mask))),
        lengths_(load<Index>(from.key_lengths, {0})),
        document_q_(load<std::int32_t>(from.documents_q, {2})),
        document_k_(load<std::int32_t>(from.documents_k, {2})) {
    for (std::size_t n = 0; n < 3; ++n) {
      const ringproof_tensor& scale = n == 0 ? from.q_scale : n == 1 ? from.k_scale : from.v_scale;
      factors_[n] = load<Real>(scale, features_);
    }
    sizes();
    rows();
  }

  void answer(ringproof_answer& to) const {
    const reference::Problem<Real> problem = views();
    reference::Trace trace;
    if (to.dq.data == nullptr) {
      put(to, ring_attention(problem, plan_of(from_), trace));
      return;
    }
    const reference::Upstream<Real> upstream{dout_.view(), dlse_.view()};
    const auto both = ring_attention_backward(problem, upstream, plan_of(from_), trace);
    put(to, both.answer);
    store(to.dq, features_, both.gradients.dq);
    store(to.dk, features_, both.gradients.dk);
    store(to.dv, features_, both.gradients.dv);
    store(to.dbias, score_axes(to.dbias), both.gradients.dbias.data);
    store(to.dsinks, {1}, both.gradients.dsinks);
  }

 private:
  void put(ringproof_answer& to, const reference::Answer<Real>& answer) const {
    store(to.out, features_, answer.out);
    store(to.lse, row_axes(from_), answer.lse);
  }

  void sizes() {
    plain_.batches = q_.size[0], plain_.heads = q_.size[1], plain_.kv_heads = k_.size[1];
    plain_.queries = q_.size[2], plain_.keys = k_.size[2];
    plain_.head_dim = q_.size[3], plain_.value_dim = v_.size[3];
    plain_.scale = from_.has_scale != 0
                       ? static_cast<Real>(from_.scale)
                       : reference::Number<Real>::inverse_square_root(plain_.head_dim);
    plain_.softcap = static_cast<Real>(from_.softcap);
    plain_.causal = from_.causal != RINGPROOF_CAUSAL_NONE;
    plain_.window_left = from_.window_left, plain_.window_right = from_.window_right;
    plain_.empty_row = from_.empty_row == RINGPROOF_EMPTY_NAN ? reference::EmptyRow::nan
                                                              : reference::EmptyRow::zero;
  }

  void rows() {
    const auto alignment = from_.causal == RINGPROOF_CAUSAL_BOTTOM_RIGHT
                               ? reference::Alignment::bottom_right
                               : reference::Alignment::top_left;
    const Index queries = plain_.queries, keys = plain_.keys;
    plain_.offset = reference::query_offset(alignment, queries, keys);
    const auto given = [](const ringproof_tensor& tensor) {
      return load<Index>(tensor, tensor.ndim == 2 ? Axes{0, 2} : Axes{2});
    };
    position_q_ = given(from_.positions_q), position_k_ = given(from_.positions_k);
    if (from_.cu_seqlens_q.data == nullptr) return;
    const auto q = load<std::int32_t>(from_.cu_seqlens_q, {2}).numbers;
    const auto k = load<std::int32_t>(from_.cu_seqlens_k, {2}).numbers;
    document_q_ = {reference::documents_of(q, queries), {1, 1, queries, 1}};
    document_k_ = {reference::documents_of(k, keys), {1, 1, keys, 1}};
    position_q_ = {reference::positions_in_documents(q, k, alignment, queries), {1, 1, queries, 1}};
    position_k_ = {reference::positions_in_documents(k, k, reference::Alignment::top_left, keys),
                   {1, 1, keys, 1}};
  }

  reference::Factors<Real> factors(const Loaded<Real>& loaded, const Loaded<Real>& scaled) const {
    reference::Factors<Real> factors{loaded.view(), {1, 1, 1, 1}};
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (loaded.size[axis] > 0) factors.block[axis] = scaled.size[axis] / loaded.size[axis];
    }
    return factors;
  }

  reference::Problem<Real> views() const {
    reference::Problem<Real> problem = plain_;
    problem.q = q_.view(), problem.k = k_.view(), problem.v = v_.view();
    problem.q_scale = factors(factors_[0], q_);
    problem.k_scale = factors(factors_[1], k_);
    problem.v_scale = factors(factors_[2], v_);
    problem.bias = bias_.view(), problem.mask = mask_.view();
    problem.alibi_slopes = slopes_.view(), problem.sinks = sinks_.view();
    problem.key_lengths = lengths_.view();
    problem.position_q = position_q_.view(), problem.position_k = position_k_.view();
    problem.document_q = document_q_.view(), problem.document_k = document_k_.view();
    return problem;
  }

  const ringproof_problem& from_;
  Axes features_;
  reference::Problem<Real> plain_;
  Loaded<Real> q_, k_, v_, bias_, slopes_, sinks_, dout_, dlse_;
  std::array<Loaded<Real>, 3> factors_;
  Loaded<std::uint8_t> mask_;
  Loaded<Index> lengths_, position_q_, position_k_;
  Loaded<std::int32_t> document_q_, document_k_;
};

}  // namespace ringproof::suite
