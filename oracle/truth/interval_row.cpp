// A row from interval arithmetic: the score rule of docs/formats.md 1.1 and dense_softmax.hpp, both
// on intervals. Everything is outward rounded from the stored bits on; no error analysis is needed.
// Slow (microseconds a product); rows come here only when double-double cannot decide them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "oracle/truth/dense_softmax.hpp"
#include "oracle/truth/interval.hpp"
#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Row n of a stored tensor as intervals: stored values times their factors.
template <class Number>
class StoredRows {
 public:
  StoredRows(const Tensor& tensor, const Factors& factors, std::int64_t b, std::int64_t h)
      : tensor_(tensor),
        factors_(factors),
        b_(b),
        h_(h),
        decoded_(size(tensor.shape[3])),
        row_(size(tensor.shape[3])) {}

  const std::vector<Number>& operator()(std::int64_t n) {
    decode_row(tensor_.dtype, tensor_.address(b_, h_, n, 0), tensor_.stride[3], tensor_.shape[3],
               decoded_.data());
    for (std::size_t d = 0; d < row_.size(); ++d) {
      row_[d] = decoded_[d];
      if (factors_.tensor) row_[d] *= factors_.at(b_, h_, n, static_cast<std::int64_t>(d));
    }
    return row_;
  }

 private:
  const Tensor& tensor_;
  const Factors& factors_;
  std::int64_t b_, h_;
  std::vector<double> decoded_;
  std::vector<Number> row_;
};

/// 128-bit integers do not convert; two halves do, exactly.
template <class Number>
Number from_unsigned(std::uint64_t value) {
  return Number(static_cast<double>(value >> 32)) * 4294967296.0 +
         static_cast<double>(value & 0xffffffffU);
}

/// Scores of one row in the order of docs/formats.md: scale, softcap, bias, ALiBi.
template <class Number>
class ScoreRule {
 public:
  ScoreRule(const Problem& problem, const RowTruth& row)
      : problem_(problem),
        row_(row),
        scale_(problem.spec.scale ? Number(*problem.spec.scale)
                                  : Number(1) / sqrt(Number(double(problem.head_dim)))),
        magnitude_(abs(scale_)),
        queries_(problem.q, problem.q_scale, row.b, row.h),
        keys_(problem.k, problem.k_scale, row.b, problem.kv_head(row.h)),
        q_(queries_(row.i)) {}

  /// Score of key j; its parts go to position n of the arrays of `row`.
  Number operator()(std::int64_t j, std::size_t n, RowTruth& row) {
    const std::vector<Number>& k = keys_(j);
    Number dot = 0, magnitudes = 0;
    for (std::size_t d = 0; d < k.size(); ++d) {
      term_ = q_[d] * k[d];
      dot += term_;
      term_ = abs(term_);
      magnitudes += term_;
    }
    Number score = scale_ * dot;
    row.dot[n] = middle(score.backend().data());
    row.abs_dot[n] = upper_end(Number(magnitude_ * magnitudes).backend().data());
    if (const double cap = problem_.spec.softcap; cap > 0) {
      score = cap * tanh(Number(score / cap));
      row.capped[n] = middle(score.backend().data());
    }
    if (problem_.bias) score += row.bias[n];
    if (problem_.alibi_slopes) {
      const Number alibi = -problem_.alibi_slopes.at(row_.b, row_.h, 0, 0) *
                           from_unsigned<Number>(distance(problem_, row_.b, row_.i, j));
      row.alibi[n] = middle(alibi.backend().data());
      score += alibi;
    }
    return score;
  }

 private:
  const Problem& problem_;
  const RowTruth& row_;
  Number scale_, magnitude_;
  StoredRows<Number> queries_, keys_;
  std::vector<Number> q_;
  Number term_;
};

/// Fills dot ... score, score_radius, max_score; returns the scores of the visible keys.
template <class Number>
std::vector<Number> fill_scores(const Problem& problem, const std::vector<std::uint8_t>& visible,
                                RowTruth& row) {
  const std::size_t keys = visible.size();
  row.dot.assign(keys, 0);
  row.abs_dot.assign(keys, 0);
  row.capped.assign(problem.spec.softcap > 0 ? keys : 0, 0);
  row.alibi.assign(problem.alibi_slopes ? keys : 0, 0);
  row.score.assign(keys, -kInfinity);
  row.score_radius = 0;
  row.max_score = row.has_sink ? row.sink : -kInfinity;
  ScoreRule<Number> rule(problem, row);
  std::vector<Number> scores;
  scores.reserve(size(row.visible));
  for (std::size_t n = 0; n < keys; ++n) {
    if (visible[n] == 0) continue;
    scores.push_back(rule(row.keys.first + static_cast<std::int64_t>(n), n, row));
    const mpfi_srcptr interval = scores.back().backend().data();
    row.score[n] = middle(interval);
    row.max_score = std::max(row.max_score, row.score[n]);
    // The part of the distance that the promise "2^-53 |score|" does not cover; the product is
    // exact or, for tiny scores, replaced by nothing.
    const double covered = std::abs(row.score[n]) > 0x1p-900 ? 0x1p-53 * std::abs(row.score[n]) : 0;
    const double radius = farthest(interval, row.score[n]);
    if (radius > covered) {
      row.score_radius = std::max(row.score_radius, std::nextafter(radius - covered, kInfinity));
    }
  }
  return scores;
}

template <class Number>
void fill_probabilities(const std::vector<Number>& scores, const Number& lse,
                        const std::vector<std::uint8_t>& visible, RowTruth& row) {
  row.log_p.assign(visible.size(), -kInfinity);
  row.p.assign(visible.size(), 0);
  std::size_t next = 0;
  for (std::size_t n = 0; n < visible.size(); ++n) {
    if (visible[n] == 0) continue;
    const Number log_p = scores[next++] - lse;
    row.log_p[n] = middle(log_p.backend().data());
    row.p[n] = middle(Number(exp(log_p)).backend().data());
  }
  row.log_p_sink = row.has_sink ? middle(Number(Number(row.sink) - lse).backend().data()) : 0;
}

/// A point near the largest score, to the last digit of the interval type: the binary64 maximum of
/// the row would be off by 2^-53 of it, which for scores of 1e30 no exponential survives, and which
/// would keep a row of equal scores from the exact weights exp(0) = 1.
template <class Number>
Number point_near_maximum(const std::vector<Number>& scores, const RowTruth& row) {
  Number shift(row.max_score);  // exact for a sink
  for (const Number& score : scores) {
    if (middle(score.backend().data()) != row.max_score) continue;
    mpfi_ptr point = shift.backend().data();
    mpfi_mid(&point->left, score.backend().data());
    mpfr_set(&point->right, &point->left, MPFR_RNDN);  // the same number: equally many digits
    break;
  }
  return shift;
}

template <unsigned decimal_digits>
void compute(const Problem& problem, const std::vector<std::uint8_t>& visible, RowTruth& row) {
  using Number = Interval<decimal_digits>;
  const std::vector<Number> scores = fill_scores<Number>(problem, visible, row);
  if (!std::isfinite(row.max_score)) {
    row.not_applicable = "a score is beyond binary64";
    return;
  }
  std::vector<std::int64_t> seen;
  for (std::size_t n = 0; n < visible.size(); ++n) {
    if (visible[n] != 0) seen.push_back(row.keys.first + static_cast<std::int64_t>(n));
  }
  StoredRows<Number> values(problem.v, problem.v_scale, row.b, problem.kv_head(row.h));
  const Number sink(row.sink);
  const SoftmaxRow<Number> answer = dense_softmax<Number>(
      scores, problem.value_dim, [&](std::size_t j) -> const auto& { return values(seen[j]); },
      row.has_sink ? &sink : nullptr, point_near_maximum(scores, row));
  row.lse = certify(answer.lse);
  row.out.resize(size(problem.value_dim));
  std::transform(answer.out.begin(), answer.out.end(), row.out.begin(),
                 [](const Number& element) { return certify(element); });
  fill_probabilities(scores, answer.lse, visible, row);
}

}  // namespace

void interval_row(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
                  unsigned bits, RowTruth& row) {
  RowInputs inputs;
  std::vector<std::uint8_t> keys_finite(size(problem.keys), 1);
  std::vector<double> scratch;
  const KeyRange range = visible_range(problem, b, i);
  for (std::int64_t j = range.first; j < range.last; ++j) {
    keys_finite[size(j)] = key_is_finite(problem, b, problem.kv_head(h), j, scratch);
  }
  if (!begin_row(problem, b, h, i, keys_finite.data(), row, inputs)) return;
  const std::vector<std::uint8_t>& visible = inputs.visible;
  // A ladder of fixed types, each twice the one before. The last holds every score of binary64
  // inputs exactly enough: dot products span at most 4200 binary digits.
  if (bits <= 133) return compute<40>(problem, visible, row);
  if (bits <= 266) return compute<80>(problem, visible, row);
  if (bits <= 532) return compute<160>(problem, visible, row);
  if (bits <= 1063) return compute<320>(problem, visible, row);
  if (bits <= 2127) return compute<640>(problem, visible, row);
  if (bits <= 4253) return compute<1280>(problem, visible, row);
  compute<2560>(problem, visible, row);
}

}  // namespace ringproof::oracle
