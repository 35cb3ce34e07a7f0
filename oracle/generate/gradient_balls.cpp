#include "oracle/generate/gradient_balls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/judge/certified_rows.hpp"

namespace ringproof::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr unsigned kBits = 256;  // where double-double does not certify a row

std::size_t at(std::int64_t n) { return static_cast<std::size_t>(n); }

/// All rows that read one KV head.
class HeadSolver {
 public:
  HeadSolver(const Problem& problem, const Upstream& upstream, const Contract& contract,
             std::int64_t b, std::int64_t kv_head, GradientBalls& balls)
      : problem_(problem),
        upstream_(upstream),
        contract_(contract),
        b_(b),
        kv_head_(kv_head),
        balls_(balls),
        forward_(problem, b, kv_head, Precision::fast),
        backward_(problem, upstream, forward_),
        shape_(contract, problem, b, kv_head),
        sums_(problem),
        bounds_(shape_),
        values_(problem, backward_.keys(), backward_.keys_stride(), forward_.values(),
                forward_.values_stride()),
        unknown_(at(problem.keys)) {}

  void solve() {
    const std::int64_t first = kv_head_ * problem_.group();
    for (std::int64_t h = first; h < first + problem_.group(); ++h) {
      for (std::int64_t i = 0; i < problem_.queries; i += HeadTruth::kRows) solve_rows(h, i);
    }
    bounds_.finish();
    balls_.largest_key[at(b_ * problem_.kv_heads + kv_head_)] = values_.largest_key;
    for (std::int64_t j = 0; j < problem_.keys; ++j) store_key(j);
  }

 private:
  void solve_rows(std::int64_t h, std::int64_t first) {
    const auto count = static_cast<std::size_t>(
        std::min<std::int64_t>(HeadTruth::kRows, problem_.queries - first));
    HeadTruth::RowId ids[HeadTruth::kRows];
    for (std::size_t n = 0; n < count; ++n) ids[n] = {h, first + static_cast<std::int64_t>(n)};
    backward_.rows({ids, count}, rows_.data(), gradients_.data(), &sums_);
    for (std::size_t n = 0; n < count; ++n) {
      RowTruth& row = rows_[n];
      RowGradients& gradients = gradients_[n];
      if (gradients.failed && gradients.not_applicable.empty()) {
        interval_row_gradients(problem_, upstream_, b_, h, ids[n].i, kBits, row, gradients, &sums_);
      }
      certify(problem_, row);
      store_row(row, gradients);
    }
  }

  void store_row(const RowTruth& row, const RowGradients& gradients) {
    const std::int64_t n = (b_ * problem_.heads + row.h) * problem_.queries + row.i;
    bool known = gradients.not_applicable.empty() && !gradients.failed;
    if (known) {
      bound_row_backward(contract_, problem_, upstream_.given, values_, row, gradients, bound_,
                         &bounds_);
      known = bound_.not_applicable.empty();
    }
    balls_.row_term[at(n)] = known ? gradients.D : 0;
    balls_.row_term_radius[at(n)] =
        known ? gradients.D_radius + 0x1p-52 * std::abs(gradients.D) : 0;
    for (const double q : gradients.q) {
      balls_.largest_query[at(n)] = std::max(balls_.largest_query[at(n)], std::abs(q));
    }
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      balls_.dq[at(n * problem_.head_dim + d)] =
          known ? GradientBall{gradients.dq[at(d)], bound_.dq[at(d)]} : GradientBall{{}, kInfinity};
    }
    if (known) return;
    for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) unknown_[at(j)] = 1;
  }

  void store_key(std::int64_t j) {
    const bool known = unknown_[at(j)] == 0 && !sums_.not_applicable(j);
    const std::int64_t n = (b_ * problem_.kv_heads + kv_head_) * problem_.keys + j;
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      balls_.dk[at(n * problem_.head_dim + d)] =
          known ? GradientBall{sums_.dk(j, d), bounds_.dk(j, d)} : GradientBall{{}, kInfinity};
    }
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
      balls_.dv[at(n * problem_.value_dim + c)] =
          known ? GradientBall{sums_.dv(j, c), bounds_.dv(j, c)} : GradientBall{{}, kInfinity};
    }
  }

  const Problem& problem_;
  const Upstream& upstream_;
  const Contract& contract_;
  std::int64_t b_, kv_head_;
  GradientBalls& balls_;
  HeadTruth forward_;
  HeadGradients backward_;
  GradientShape shape_;
  GradientSums sums_;
  GradientBoundSums bounds_;
  BackwardHead values_;
  std::vector<char> unknown_;  // [Nk]
  std::array<RowTruth, HeadTruth::kRows> rows_;
  std::array<RowGradients, HeadTruth::kRows> gradients_;
  RowGradientBound bound_;
};

}  // namespace

GradientBalls gradient_balls(const Problem& problem, const Upstream& upstream,
                             const Contract& contract) {
  const Problem& p = problem;
  GradientBalls balls;
  balls.dq.resize(at(p.batches * p.heads * p.queries * p.head_dim));
  balls.dk.resize(at(p.batches * p.kv_heads * p.keys * p.head_dim));
  balls.dv.resize(at(p.batches * p.kv_heads * p.keys * p.value_dim));
  for (auto* rows : {&balls.row_term, &balls.row_term_radius, &balls.largest_query}) {
    rows->resize(at(p.batches * p.heads * p.queries));
  }
  balls.largest_key.resize(at(p.batches * p.kv_heads));
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      HeadSolver(problem, upstream, contract, b, kv_head, balls).solve();
    }
  }
  return balls;
}

}  // namespace ringproof::oracle
