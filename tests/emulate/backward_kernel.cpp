// Gradients in real arithmetic (backward_kernel.hpp).
#include "tests/emulate/backward_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "tests/emulate/loaded_problem.hpp"

namespace ringproof::emulate {
namespace {

using oracle::Problem;

/// What dk and dv need of one row.
template <class Real>
struct RowShare {
  std::int64_t head = 0, query = 0;
  std::vector<std::int64_t> keys;
  std::vector<Real> ds, p;  // of `keys`
};

template <class Real>
class BackwardKernel {
 public:
  BackwardKernel(const Problem& problem, const Numerics& numerics, const BackwardNumerics& backward,
                 const Answers& forward, const UpstreamValues& upstream, std::uint64_t seed)
      : problem_(problem),
        numerics_(numerics),
        backward_(backward),
        forward_(forward),
        upstream_(upstream),
        functions_(numerics, seed),
        loaded_(problem, numerics, functions_) {
    const auto size = [](const oracle::Tensor& t) {
      return static_cast<std::size_t>(t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]);
    };
    answers_.dq.assign(size(problem.q), 0);
    answers_.dk.assign(size(problem.k), 0);
    answers_.dv.assign(size(problem.v), 0);
    const std::int64_t pairs = problem.batches * problem.heads * problem.queries * problem.keys;
    if (problem.bias) answers_.dbias.assign(static_cast<std::size_t>(pairs), 0);
    if (problem.sinks) answers_.dsinks.assign(static_cast<std::size_t>(problem.heads), 0);
    sinks_.assign(answers_.dsinks.size(), 0);
    // Queries and keys scaled by the root of the scale carry it into both gradients.
    scale_ = static_cast<Real>(numerics.root_scale ? std::sqrt(loaded_.scale()) : loaded_.scale());
  }

  GradientAnswers run() {
    for (std::int64_t b = 0; b < problem_.batches; ++b) {
      for (std::int64_t kv = 0; kv < problem_.kv_heads; ++kv) head(b, kv);
    }
    for (std::size_t h = 0; h < sinks_.size(); ++h) {
      answers_.dsinks[h] = static_cast<double>(sinks_[h]);
    }
    return std::move(answers_);
  }

 private:
  std::size_t row_of(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return static_cast<std::size_t>((b * problem_.heads + h) * problem_.queries + i);
  }
  Real narrow(Real x, const SmallFloat& format) const {
    return static_cast<Real>(cast(static_cast<double>(x), format));
  }
  Real upstream(std::size_t row, std::int64_t c) const {
    return static_cast<Real>(upstream_.dout[row * static_cast<std::size_t>(problem_.value_dim) +
                                            static_cast<std::size_t>(c)]);
  }

  void head(std::int64_t b, std::int64_t kv) {
    const std::int64_t group = problem_.group();
    std::vector<RowShare<Real>> rows;
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      for (std::int64_t i = 0; i < problem_.queries; ++i) rows.push_back(row(b, h, i));
    }
    for (std::int64_t j = 0; j < problem_.keys; ++j) key(b, kv, j, rows);
  }

  /// exp(x - L) for a score or a sink in natural units, or for a raw score of a fused argument.
  Real probability(const RowScores<Real>& scores, Real s, bool sink, Real lse) {
    constexpr Real kLog2e = static_cast<Real>(1.4426950408889634074L);
    switch (numerics_.argument) {
      case Argument::sub:
        return functions_.exp(s - lse);
      case Argument::sub_log2:
        return functions_.exp2((s - lse) * kLog2e);
      case Argument::fused:
        break;
    }
    const Real shift = numerics_.lse_base_two ? lse : lse * kLog2e;
    if (sink) return functions_.exp2(s * kLog2e - shift);
    return functions_.exp2(std::fma(s, scores.to_exponent, -shift));
  }

  Real dot(Sum order, const Products<Real>& terms) {
    return add_products(order, numerics_.step, 0, Real{0}, terms);
  }

  RowShare<Real> row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t kv = problem_.kv_head(h);
    const std::size_t at = row_of(b, h, i);
    RowShare<Real> share{
        .head = h, .query = i, .keys = loaded_.visible(b, h, i), .ds = {}, .p = {}};
    const RowScores<Real> scores = loaded_.scores_of(b, h, i, share.keys);
    if (share.keys.empty() && !scores.has_sink) return share;
    const Real lse = static_cast<Real>(forward_.lse[at]);
    std::vector<Real> p, p_cast, dp;
    Real p_sink = scores.has_sink ? probability(scores, scores.sink, true, lse) : Real{0};
    if (backward_.stored) {
      stored_probabilities(b, kv, scores, share.keys, p, p_cast, p_sink);
    } else {
      for (const std::int64_t j : share.keys) {
        p.push_back(probability(scores, scores.score[static_cast<std::size_t>(j)], false, lse));
        p_cast.push_back(static_cast<Real>(
            cast(static_cast<double>(p.back()) * numerics_.p_scale, numerics_.p_cast) /
            numerics_.p_scale));
      }
    }
    for (const std::int64_t j : share.keys) {
      Products<Real> terms;
      for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
        terms.add(loaded_.reload(static_cast<double>(upstream(at, c))), loaded_.value(b, kv, j)[c],
                  c);
      }
      dp.push_back(narrow(dot(backward_.dp_sum, terms), backward_.dp_store));
    }
    const std::vector<Real>& in_ds = backward_.cast_in_ds ? p_cast : p;
    const Real delta = this->delta(at, share.keys, in_ds, dp);
    for (std::size_t n = 0; n < share.keys.size(); ++n) {
      const std::int64_t j = share.keys[n];
      const Real t = dp[n] - delta;
      const Real f = factor(scores, j);
      Real ds = backward_.factor_first && f != 1 ? in_ds[n] * (t * f) : in_ds[n] * t;
      if (problem_.bias) {
        answers_.dbias[at * static_cast<std::size_t>(problem_.keys) + static_cast<std::size_t>(j)] =
            static_cast<double>(narrow(in_ds[n] * t, backward_.ds_cast));
      }
      if (!backward_.factor_first && f != 1) ds *= f;
      if (backward_.scale_first) ds = narrow(ds * scale_, backward_.gradient_store);
      share.ds.push_back(narrow(ds, backward_.ds_cast));
    }
    share.p = p_cast;
    query(b, kv, at, share);
    if (scores.has_sink) {
      Real x = p_sink * delta;
      if (backward_.stored) x = narrow(x, backward_.ds_cast);
      sinks_[static_cast<std::size_t>(h)] -= x;
    }
    return share;
  }

  void stored_probabilities(std::int64_t b, std::int64_t kv, const RowScores<Real>& scores,
                            const std::vector<std::int64_t>& keys, std::vector<Real>& p,
                            std::vector<Real>& p_cast, Real& p_sink) {
    RowSoftmax<Real> softmax(numerics_, functions_, scores, loaded_.value(b, kv, 0),
                             problem_.value_dim);
    PartialKeys all;
    all.rows = problem_.keys;
    for (const std::int64_t j : keys) all.keys.push_back({j, j});
    State<Real> state = softmax.two_pass(all, scores.has_sink);
    p = std::move(state.p);
    p_cast = std::move(state.p_cast);
    p_sink = state.p_sink;
  }

  /// D - dL
  Real delta(std::size_t at, const std::vector<std::int64_t>& keys, const std::vector<Real>& p,
             const std::vector<Real>& dp) {
    Products<Real> terms;
    if (backward_.delta_from_products) {
      for (std::size_t n = 0; n < keys.size(); ++n) terms.add(p[n], dp[n], keys[n]);
    } else {
      for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
        const std::size_t element =
            at * static_cast<std::size_t>(problem_.value_dim) + static_cast<std::size_t>(c);
        terms.add(upstream(at, c), static_cast<Real>(forward_.out[element]), c);
      }
    }
    const Real D = dot(backward_.delta_sum, terms);
    return upstream_.dlse.empty() ? D : D - static_cast<Real>(upstream_.dlse[at]);
  }

  /// Derivative of the softcap at the score computed anew.
  Real factor(const RowScores<Real>& scores, std::int64_t j) const {
    if (problem_.spec.softcap == 0) return 1;
    const Real y =
        scores.capped[static_cast<std::size_t>(j)] / static_cast<Real>(problem_.spec.softcap);
    return 1 - y * y;
  }

  Real finished(Real x) {
    return backward_.scale_first ? x : narrow(x * scale_, backward_.gradient_store);
  }

  /// Chunks summed from zero, added to the running sum and stored.
  Real summed(const Products<Real>& terms, std::int64_t chunk, std::int64_t places) {
    if (chunk == 0)
      chunk = std::max<std::int64_t>(1, (places + backward_.ranks - 1) / backward_.ranks);
    Real running = 0;
    bool started = false;
    for (std::size_t first = 0, last = 0; first < terms.size(); first = last) {
      const std::int64_t part = terms.place[first] / chunk;
      Products<Real> piece;
      for (; last < terms.size() && terms.place[last] / chunk == part; ++last) {
        piece.add(terms.a[last], terms.b[last], terms.place[last] % chunk);
      }
      const Real sum =
          add_products(backward_.gradient_sum, numerics_.step, numerics_.leaf, Real{0}, piece);
      running = narrow(started ? running + sum : sum, backward_.partial_store);
      started = true;
    }
    return running;
  }

  void query(std::int64_t b, std::int64_t kv, std::size_t at, const RowShare<Real>& share) {
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      Products<Real> terms;
      for (std::size_t n = 0; n < share.keys.size(); ++n) {
        terms.add(share.ds[n], loaded_.key(b, kv, share.keys[n])[d], share.keys[n]);
      }
      const Real sum = summed(terms, backward_.keys_of_partial, problem_.keys);
      answers_.dq[at * static_cast<std::size_t>(problem_.head_dim) + static_cast<std::size_t>(d)] =
          static_cast<double>(finished(sum));
    }
  }

  /// Sum over the rows of all heads, heads apart or one running sum.
  template <class Term>
  Real over_rows(const std::vector<RowShare<Real>>& rows, std::int64_t j, const Term& term) {
    Real total = 0;
    Products<Real> terms;
    const bool apart =
        backward_.heads_apart || backward_.ranks > 1 || backward_.rows_of_partial > 0;
    bool started = false;
    const auto close = [&] {
      if (terms.size() == 0) return;
      Real sum = summed(terms, backward_.rows_of_partial, problem_.queries);
      if (problem_.group() > 1) sum = narrow(sum, backward_.partial_store);
      total = started ? total + sum : sum;
      started = true;
      terms.clear();
    };
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (apart && r > 0 && rows[r].head != rows[r - 1].head) close();
      const auto found = std::lower_bound(rows[r].keys.begin(), rows[r].keys.end(), j);
      if (found == rows[r].keys.end() || *found != j) continue;
      const auto n = static_cast<std::size_t>(found - rows[r].keys.begin());
      const std::int64_t place = apart ? rows[r].query : static_cast<std::int64_t>(r);
      term(rows[r], n, place, terms);
    }
    if (apart) {
      close();
      return total;
    }
    const Real sum =
        add_products(backward_.gradient_sum, numerics_.step, numerics_.leaf, Real{0}, terms);
    return narrow(sum, backward_.partial_store);
  }

  void key(std::int64_t b, std::int64_t kv, std::int64_t j,
           const std::vector<RowShare<Real>>& rows) {
    const auto at = static_cast<std::size_t>((b * problem_.kv_heads + kv) * problem_.keys + j);
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      const Real sum = over_rows(
          rows, j,
          [&](const RowShare<Real>& row, std::size_t n, std::int64_t place, Products<Real>& terms) {
            terms.add(row.ds[n], loaded_.query(b, row.head, row.query)[d], place);
          });
      answers_.dk[at * static_cast<std::size_t>(problem_.head_dim) + static_cast<std::size_t>(d)] =
          static_cast<double>(finished(sum));
    }
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
      const Real sum = over_rows(
          rows, j,
          [&](const RowShare<Real>& row, std::size_t n, std::int64_t place, Products<Real>& terms) {
            const Real up = upstream(row_of(b, row.head, row.query), c);
            terms.add(row.p[n], loaded_.reload(static_cast<double>(up)), place);
          });
      answers_.dv[at * static_cast<std::size_t>(problem_.value_dim) + static_cast<std::size_t>(c)] =
          static_cast<double>(sum);
    }
  }

  const Problem& problem_;
  const Numerics& numerics_;
  const BackwardNumerics& backward_;
  const Answers& forward_;
  const UpstreamValues& upstream_;
  Functions<Real> functions_;
  LoadedProblem<Real> loaded_;
  Real scale_ = 1;
  std::vector<Real> sinks_;
  GradientAnswers answers_;
};

/// The narrow type behind a declared error, as the presets declare them.
SmallFloat type_of(double u, const SmallFloat& sixteen, const SmallFloat& otherwise) {
  if (u == 0 || u < 0x1p-20) return kNone;
  return sixteen ? sixteen : otherwise;
}

}  // namespace

BackwardNumerics draw_backward(const oracle::Contract& contract, const Numerics& numerics,
                               std::mt19937_64& random) {
  const oracle::Contract::Backward& b = contract.backward;
  const auto coin = [&] { return random() % 2 == 0; };
  const SmallFloat sixteen = contract.inputs.dtype == oracle::DType::bf16  ? kBf16
                             : contract.inputs.dtype == oracle::DType::f16 ? kFp16
                                                                           : kNone;
  BackwardNumerics n;
  n.isolated = b.mode == oracle::BackwardMode::isolated;
  const bool may_store = !n.isolated && b.p_from != oracle::ProbabilityFrom::recompute &&
                         contract.partials.count == 1 && numerics.two_pass;
  n.stored = may_store && (b.p_from == oracle::ProbabilityFrom::stored || coin());
  n.delta_from_products = !n.isolated && (b.D_from == oracle::DFrom::p_dp ||
                                          (b.D_from == oracle::DFrom::any && coin()));
  n.cast_in_ds = b.ds_from_cast && coin();
  n.factor_first = coin();
  n.scale_first = coin();
  n.heads_apart = coin();
  n.dp_sum = numerics.score_sum;
  n.gradient_sum = numerics.pv_sum;
  n.delta_sum = coin() ? Sum::sequential : Sum::lanes;
  n.dp_store = b.dp_store.empty() ? kNone : sixteen;
  n.ds_cast = type_of(b.ds_u, sixteen, numerics.p_cast);
  n.gradient_store = b.grad_store.empty() ? kNone : sixteen;
  n.partial_store = type_of(std::max(b.ring.store_u, b.group_store_u), sixteen, kNone);
  n.rows_of_partial = b.ring.count_rows;
  n.keys_of_partial = b.ring.count_keys;
  n.ranks = b.ring.count;
  return n;
}

GradientAnswers run_backward(const Problem& problem, const Numerics& numerics,
                             const BackwardNumerics& backward, const Answers& forward,
                             const UpstreamValues& upstream, std::uint64_t seed) {
  const FlushSubnormals flush(numerics.flush);
  if (numerics.binary64) {
    return BackwardKernel<double>(problem, numerics, backward, forward, upstream, seed).run();
  }
  return BackwardKernel<float>(problem, numerics, backward, forward, upstream, seed).run();
}

}  // namespace ringproof::emulate
