// What the forward and the backward pass of an emulated kernel share: its tensors as loaded, and
// its scores.
#pragma once

#include <cmath>
#include <vector>

#include "oracle/case/problem.hpp"
#include "tests/emulate/row_kernel.hpp"

namespace ringproof::emulate {

/// A value as the output or a gradient is stored.
inline double stored_as(oracle::DType dtype, double x) {
  switch (dtype) {
    case oracle::DType::bf16:
      return cast(x, kBf16);
    case oracle::DType::f16:
      return cast(x, kFp16);
    case oracle::DType::f32:
      return static_cast<float>(x);
    default:
      return x;
  }
}

template <class Real>
class LoadedProblem {
 public:
  LoadedProblem(const oracle::Problem& problem, const Numerics& numerics,
                Functions<Real>& functions)
      : problem_(problem), numerics_(numerics), functions_(functions) {
    scale_ = problem_.spec.scale.value_or(1 / std::sqrt(static_cast<double>(problem_.head_dim)));
    const double root = static_cast<Real>(std::sqrt(scale_));
    q_ = load(problem_.q, root), k_ = load(problem_.k, root), v_ = load(problem_.v, 0);
  }

  double scale() const { return scale_; }
  const Real* query(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return q_.data() + ((b * problem_.heads + h) * problem_.queries + i) * problem_.head_dim;
  }
  const Real* key(std::int64_t b, std::int64_t kv, std::int64_t j) const {
    return k_.data() + ((b * problem_.kv_heads + kv) * problem_.keys + j) * problem_.head_dim;
  }
  const Real* value(std::int64_t b, std::int64_t kv, std::int64_t j) const {
    return v_.data() + ((b * problem_.kv_heads + kv) * problem_.keys + j) * problem_.value_dim;
  }
  std::vector<std::int64_t> visible(std::int64_t b, std::int64_t h, std::int64_t i) const;

  RowScores<Real> scores_of(std::int64_t b, std::int64_t h, std::int64_t i,
                            const std::vector<std::int64_t>& visible) {
    const std::int64_t kv = problem_.kv_head(h), width = problem_.head_dim;
    const Real* q = query(b, h, i);
    const bool raw = numerics_.argument == Argument::fused && plain_scores();
    RowScores<Real> scores{.score = std::vector<Real>(static_cast<std::size_t>(problem_.keys)),
                           .capped = {}};
    constexpr double kLog2e = 1.4426950408889634074;
    const Real scale = static_cast<Real>(scale_);
    if (raw) scores.to_natural = scale;
    if (numerics_.argument == Argument::fused)
      scores.to_exponent = static_cast<Real>(raw ? scale * kLog2e : kLog2e);
    if (problem_.spec.softcap > 0) scores.capped.resize(scores.score.size());
    Products<Real> terms;
    for (const std::int64_t j : visible) {
      const Real* k = key(b, kv, j);
      terms.clear();
      for (std::int64_t t = 0; t < width; ++t) terms.add(q[t], k[t], t);
      Real s = store_score(add_products(numerics_.score_sum, numerics_.step, 0, Real{0}, terms));
      const Real factor = static_cast<Real>(problem_.q_scale.at(b, h, i, 0)) *
                          static_cast<Real>(problem_.k_scale.at(b, kv, j, 0));
      if (factor != 1) s *= factor;
      if (!raw && !numerics_.root_scale) s = store_score(s * scale);
      if (problem_.spec.softcap > 0) s = scores.capped[static_cast<std::size_t>(j)] = capped(s);
      scores.score[static_cast<std::size_t>(j)] = raw ? s : with_biases(s, b, h, i, j);
    }
    if (problem_.sinks) {
      scores.has_sink = true;
      scores.sink = static_cast<Real>(problem_.sinks.at(0, h, 0, 0));
      scores.sink_score = raw ? scores.sink / scale : scores.sink;
    }
    return scores;
  }

  /// Rounds a loaded number as the kernel does.
  Real reload(double x) const {
    return static_cast<Real>(cast(static_cast<Real>(x), numerics_.load));
  }

 private:
  /// Contiguous copy of a tensor as the kernel loads it; root > 0 and `root_scale`: scaled by it
  /// first.
  std::vector<Real> load(const oracle::Tensor& tensor, double root) {
    std::vector<Real> loaded;
    for (std::int64_t b = 0; b < tensor.shape[0]; ++b)
      for (std::int64_t h = 0; h < tensor.shape[1]; ++h)
        for (std::int64_t n = 0; n < tensor.shape[2]; ++n)
          for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
            Real x = static_cast<Real>(tensor.at(b, h, n, d));
            const bool scaled = numerics_.root_scale && root > 0;
            if (scaled) x *= static_cast<Real>(root);
            if (scaled || !numerics_.root_scale) x = static_cast<Real>(cast(x, numerics_.load));
            loaded.push_back(x);
          }
    return loaded;
  }

  Real store_score(Real s) const { return static_cast<Real>(cast(s, numerics_.score_store)); }

  bool plain_scores() const {
    return problem_.spec.softcap == 0 && !problem_.bias && !problem_.alibi_slopes;
  }

  /// cap tanh(s / cap); a 16-bit kernel stores after each operation.
  Real capped(Real s) {
    const Real cap = static_cast<Real>(problem_.spec.softcap);
    return store_score(cap * functions_.tanh(store_score(s / cap)));
  }

  /// The bias, then ALiBi, stored after each.
  Real with_biases(Real s, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    if (problem_.bias) s = store_score(s + static_cast<Real>(problem_.bias.at(b, h, i, j)));
    if (problem_.alibi_slopes) {
      const auto at_q = problem_.position_q[static_cast<std::size_t>(b * problem_.queries + i)];
      const auto at_k = problem_.position_k[static_cast<std::size_t>(b * problem_.keys + j)];
      const Real slope = static_cast<Real>(problem_.alibi_slopes.at(b, h, 0, 0));
      s = store_score(s - slope * static_cast<Real>(std::llabs(at_q - at_k)));
    }
    return s;
  }

  const oracle::Problem& problem_;
  const Numerics& numerics_;
  Functions<Real>& functions_;
  double scale_ = 1;
  std::vector<Real> q_, k_, v_;  // [B, H, Nq, D], [B, Hkv, Nk, D], [B, Hkv, Nk, Dv]
};

/// May query i of head h see key j? From the text of docs/formats.md, one key at a time.
bool sees(const oracle::Problem&, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

template <class Real>
std::vector<std::int64_t> LoadedProblem<Real>::visible(std::int64_t b, std::int64_t h,
                                                       std::int64_t i) const {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < problem_.keys; ++j)
    if (sees(problem_, b, h, i, j)) keys.push_back(j);
  return keys;
}

}  // namespace ringproof::emulate
