// The emulated kernel around its rows: loading, scores, visibility, who holds which keys
// (kernel.hpp).
#include "tests/emulate/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/emulate/layout.hpp"
#include "tests/emulate/row_kernel.hpp"

namespace ringproof::emulate {
namespace {

using oracle::Problem;
using oracle::Tensor;

template <class Real>
class Kernel {
 public:
  Kernel(const Problem& problem, const Numerics& numerics, std::uint64_t seed)
      : problem_(problem), numerics_(numerics), functions_(numerics, seed) {}

  /// Loads q, k and v; to be called before the first row.
  void load_all() {
    scale_ = problem_.spec.scale.value_or(1 / std::sqrt(static_cast<double>(problem_.head_dim)));
    const double root = static_cast<Real>(std::sqrt(scale_));
    q_ = load(problem_.q, root), k_ = load(problem_.k, root), v_ = load(problem_.v, 0);
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, Answers& answers) {
    const std::int64_t kv = problem_.kv_head(h), width = problem_.value_dim;
    std::vector<std::int64_t> visible;
    for (std::int64_t j = 0; j < problem_.keys; ++j)
      if (sees(problem_, b, h, i, j)) visible.push_back(j);
    const RowScores<Real> scores = scores_of(b, h, i, visible);
    const Real* values = v_.data() + (b * problem_.kv_heads + kv) * problem_.keys * width;
    RowSoftmax<Real> softmax(numerics_, functions_, scores, values, width);
    RowAnswer<Real> answer = answer_of(softmax, partials_of(i, visible), scores.has_sink);
    const double factor = problem_.v_scale.at(b, kv, 0, 0);
    const std::int64_t row = (b * problem_.heads + h) * problem_.queries + i;
    answers.lse[static_cast<std::size_t>(row)] = static_cast<double>(answer.lse);
    for (std::int64_t column = 0; column < width && !answer.empty; ++column) {
      Real x = answer.out[static_cast<std::size_t>(column)];
      if (factor != 1) x *= static_cast<Real>(factor);
      answers.out[static_cast<std::size_t>(row * width + column)] = stored(x);
    }
  }

 private:
  /// Contiguous copy of a tensor as the kernel loads it; root > 0 and `root_scale`: scaled by it
  /// first.
  std::vector<Real> load(const Tensor& tensor, double root) {
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

  double stored(Real x) const {
    switch (numerics_.output) {
      case oracle::DType::bf16:
        return cast(x, kBf16);
      case oracle::DType::f16:
        return cast(x, kFp16);
      case oracle::DType::f32:
        return static_cast<float>(x);
      default:
        return static_cast<double>(x);
    }
  }

  Real store_score(Real s) const { return static_cast<Real>(cast(s, numerics_.score_store)); }

  bool plain_scores() const {
    return problem_.spec.softcap == 0 && !problem_.bias && !problem_.alibi_slopes;
  }

  RowScores<Real> scores_of(std::int64_t b, std::int64_t h, std::int64_t i,
                            const std::vector<std::int64_t>& visible) {
    const std::int64_t kv = problem_.kv_head(h), width = problem_.head_dim;
    const Real* q = q_.data() + ((b * problem_.heads + h) * problem_.queries + i) * width;
    const bool raw = numerics_.argument == Argument::fused && plain_scores();
    RowScores<Real> scores{.score = std::vector<Real>(static_cast<std::size_t>(problem_.keys))};
    constexpr double kLog2e = 1.4426950408889634074;
    const Real scale = static_cast<Real>(scale_);
    if (raw) scores.to_natural = scale;
    if (numerics_.argument == Argument::fused)
      scores.to_exponent = static_cast<Real>(raw ? scale * kLog2e : kLog2e);
    Products<Real> terms;
    for (const std::int64_t j : visible) {
      const Real* k = k_.data() + ((b * problem_.kv_heads + kv) * problem_.keys + j) * width;
      terms.clear();
      for (std::int64_t t = 0; t < width; ++t) terms.add(q[t], k[t], t);
      Real s = store_score(add_products(numerics_.score_sum, numerics_.step, 0, Real{0}, terms));
      const Real factor = static_cast<Real>(problem_.q_scale.at(b, h, i, 0)) *
                          static_cast<Real>(problem_.k_scale.at(b, kv, j, 0));
      if (factor != 1) s *= factor;
      if (!raw && !numerics_.root_scale) s = store_score(s * scale);
      scores.score[static_cast<std::size_t>(j)] = raw ? s : with_additions(s, b, h, i, j);
    }
    if (problem_.sinks) {
      scores.has_sink = true;
      scores.sink = static_cast<Real>(problem_.sinks.at(0, h, 0, 0));
      scores.sink_score = raw ? scores.sink / scale : scores.sink;
    }
    return scores;
  }

  /// Softcap, then the bias, then ALiBi; a 16-bit kernel stores after each.
  Real with_additions(Real s, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    if (problem_.spec.softcap > 0) {
      const Real cap = static_cast<Real>(problem_.spec.softcap);
      s = store_score(cap * functions_.tanh(store_score(s / cap)));
    }
    if (problem_.bias) s = store_score(s + static_cast<Real>(problem_.bias.at(b, h, i, j)));
    if (problem_.alibi_slopes) {
      const auto at_q = problem_.position_q[static_cast<std::size_t>(b * problem_.queries + i)];
      const auto at_k = problem_.position_k[static_cast<std::size_t>(b * problem_.keys + j)];
      const Real slope = static_cast<Real>(problem_.alibi_slopes.at(b, h, 0, 0));
      s = store_score(s - slope * static_cast<Real>(std::llabs(at_q - at_k)));
    }
    return s;
  }

  /// The visible keys by partial, in the order of merging.
  std::vector<PartialKeys> partials_of(std::int64_t i, const std::vector<std::int64_t>& visible) {
    const std::int64_t ranks = numerics_.ranks, keys = problem_.keys;
    std::vector<PartialKeys> partials(static_cast<std::size_t>(ranks));
    if (ranks == 1) {
      partials[0].rows = keys;
      for (const std::int64_t j : visible) partials[0].keys.push_back({j, j});
      return partials;
    }
    if (numerics_.contiguous) {
      std::int64_t length = (keys + ranks - 1) / ranks;
      if (numerics_.longest_partial > 0) length = std::min(length, numerics_.longest_partial);
      for (const std::int64_t j : visible)
        partials[static_cast<std::size_t>(j / length)].keys.push_back({j, j % length});
      for (PartialKeys& partial : partials) partial.rows = length;
      return partials;
    }
    std::vector<std::int64_t> step(static_cast<std::size_t>(ranks));
    std::iota(step.begin(), step.end(), 0);
    if (numerics_.known_ring) {
      const std::int64_t own = owner_of(numerics_.layout, i, keys, ranks).rank;
      for (std::int64_t r = 0; r < ranks; ++r)
        step[static_cast<std::size_t>(r)] = step_of(numerics_.ring_order, own, r, ranks);
    } else {
      std::shuffle(step.begin(), step.end(), functions_.random());
    }
    for (const std::int64_t j : visible) {
      const Ownership owner = owner_of(numerics_.layout, j, keys, ranks);
      PartialKeys& partial =
          partials[static_cast<std::size_t>(step[static_cast<std::size_t>(owner.rank)])];
      partial.keys.push_back({j, owner.place});
      partial.rows = owner.rows;
    }
    return partials;
  }

  RowAnswer<Real> answer_of(RowSoftmax<Real>& softmax, const std::vector<PartialKeys>& partials,
                            bool has_sink) {
    const std::size_t sink_at =
        has_sink ? functions_.random()() % partials.size() : partials.size();
    const bool sink_first = functions_.random()() % 2 == 0;
    std::vector<State<Real>> states;
    for (std::size_t r = 0; r < partials.size(); ++r) {
      if (partials[r].keys.empty() && r != sink_at) continue;
      if (numerics_.two_pass) {
        states.push_back(softmax.two_pass(partials[r], r == sink_at));
        continue;
      }
      State<Real> from;
      if (numerics_.carried && !states.empty()) {
        from = std::move(states.back());
        states.pop_back();
        for (Real& x : from.acc) x = static_cast<Real>(cast(x, numerics_.running_store));
      }
      states.push_back(softmax.online(partials[r], r == sink_at, sink_first, std::move(from)));
    }
    if (states.empty()) return {};
    return states.size() == 1 && (numerics_.ranks == 1 || numerics_.carried)
               ? finish_state(numerics_, functions_, softmax, states.front())
               : merge_states(numerics_, functions_, softmax, std::move(states));
  }

  const Problem& problem_;
  const Numerics& numerics_;
  Functions<Real> functions_;
  double scale_ = 1;
  std::vector<Real> q_, k_, v_;  // [B, H, Nq, D], [B, Hkv, Nk, D], [B, Hkv, Nk, Dv]
};

template <class Real>
Answers run(const Problem& problem, const Numerics& numerics, std::uint64_t seed) {
  const std::size_t rows =
      static_cast<std::size_t>(problem.batches * problem.heads * problem.queries);
  Answers answers{
      .out = std::vector<double>(rows * static_cast<std::size_t>(problem.value_dim), 0.0),
      .lse = std::vector<double>(rows)};
  const FlushSubnormals flush(numerics.flush);
  Kernel<Real> kernel(problem, numerics, seed);
  kernel.load_all();
  for (std::int64_t b = 0; b < problem.batches; ++b)
    for (std::int64_t h = 0; h < problem.heads; ++h)
      for (std::int64_t i = 0; i < problem.queries; ++i) kernel.row(b, h, i, answers);
  return answers;
}

}  // namespace

bool sees(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::size_t row = static_cast<std::size_t>(b * problem.queries + i);
  const std::size_t key = static_cast<std::size_t>(b * problem.keys + j);
  if (problem.document_q[row] < 0 || problem.document_q[row] != problem.document_k[key])
    return false;
  if (j >= problem.key_length[static_cast<std::size_t>(b)]) return false;
  if (problem.mask && problem.mask.at(b, h, i, j) == 0) return false;
  if (problem.bias && problem.bias.at(b, h, i, j) == -INFINITY) return false;
  const std::int64_t at_q = problem.position_q[row], at_k = problem.position_k[key];
  const oracle::Spec& spec = problem.spec;
  if (spec.causal != oracle::Causal::none && at_k > at_q) return false;
  if (spec.window_left >= 0 && at_k < at_q - spec.window_left) return false;
  return spec.window_right < 0 || at_k <= at_q + spec.window_right;
}

Answers run_forward(const Problem& problem, const Numerics& numerics, std::uint64_t seed) {
  return numerics.binary64 ? run<double>(problem, numerics, seed)
                           : run<float>(problem, numerics, seed);
}

}  // namespace ringproof::emulate
