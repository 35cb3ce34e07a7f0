// The forward row on intervals: scores by the score rule of docs/formats.md 1.1, then
// dense_softmax.hpp. Shared by interval_row.cpp and interval_gradients.cpp. Everything is outward
// rounded from the stored bits on; no error analysis is needed.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "oracle/truth/dense_softmax.hpp"
#include "oracle/truth/interval.hpp"
#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {

/// Row n of a stored tensor as intervals: stored values times their factors.
template <class Number>
class StoredRows {
 public:
  StoredRows(const Tensor& tensor, const Factors& factors, std::int64_t b, std::int64_t h)
      : tensor_(tensor),
        factors_(factors),
        b_(b),
        h_(h),
        decoded_(static_cast<std::size_t>(tensor.shape[3])),
        row_(static_cast<std::size_t>(tensor.shape[3])) {}

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
      tanh_ = tanh(Number(score / cap));
      score = cap * tanh_;
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

  const Number& scale() const { return scale_; }
  /// tanh(s / cap) of the last score.
  const Number& last_tanh() const { return tanh_; }
  const std::vector<Number>& query() const { return q_; }

 private:
  const Problem& problem_;
  const RowTruth& row_;
  Number scale_, magnitude_, tanh_;
  StoredRows<Number> queries_, keys_;
  std::vector<Number> q_;
  Number term_;
};

/// What the backward pass needs of the forward pass, undiminished by any rounding to binary64.
/// Numbers of the visible keys, in order.
template <class Number>
struct IntervalRow {
  std::vector<std::int64_t> keys;  // which keys they are
  std::vector<Number> scores;
  std::vector<Number> tanh;  // of score / cap; empty without softcap
  std::vector<Number> query;
  Number scale;
  SoftmaxRow<Number> answer;
};

/// Fills dot ... score, score_radius, max_score of `row`, and all but the answer of `result`.
template <class Number>
void fill_scores(const Problem& problem, const std::vector<std::uint8_t>& visible, RowTruth& row,
                 IntervalRow<Number>& result) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::size_t keys = visible.size();
  row.dot.assign(keys, 0);
  row.abs_dot.assign(keys, 0);
  row.capped.assign(problem.spec.softcap > 0 ? keys : 0, 0);
  row.alibi.assign(problem.alibi_slopes ? keys : 0, 0);
  row.score.assign(keys, -kInfinity);
  row.score_radius = 0;
  row.max_score = row.has_sink ? row.sink : -kInfinity;
  ScoreRule<Number> rule(problem, row);
  result.scale = rule.scale();
  result.query = rule.query();
  for (std::size_t n = 0; n < keys; ++n) {
    if (visible[n] == 0) continue;
    result.keys.push_back(row.keys.first + static_cast<std::int64_t>(n));
    result.scores.push_back(rule(result.keys.back(), n, row));
    if (problem.spec.softcap > 0) result.tanh.push_back(rule.last_tanh());
    const mpfi_srcptr interval = result.scores.back().backend().data();
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
}

template <class Number>
void fill_probabilities(const std::vector<Number>& scores, const Number& lse,
                        const std::vector<std::uint8_t>& visible, RowTruth& row) {
  row.log_p.assign(visible.size(), -std::numeric_limits<double>::infinity());
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

/// The whole forward row. False if it is not applicable; then `row` says why.
template <class Number>
bool compute_interval_row(const Problem& problem, const std::vector<std::uint8_t>& visible,
                          RowTruth& row, IntervalRow<Number>& result) {
  fill_scores(problem, visible, row, result);
  if (!std::isfinite(row.max_score)) {
    row.not_applicable = "a score is beyond binary64";
    return false;
  }
  StoredRows<Number> values(problem.v, problem.v_scale, row.b, problem.kv_head(row.h));
  const Number sink(row.sink);
  result.answer = dense_softmax<Number>(
      result.scores,
      problem.value_dim, [&](std::size_t j) -> const auto& { return values(result.keys[j]); },
      row.has_sink ? &sink : nullptr, point_near_maximum(result.scores, row));
  row.lse = certify(result.answer.lse);
  row.out.resize(result.answer.out.size());
  std::transform(result.answer.out.begin(), result.answer.out.end(), row.out.begin(),
                 [](const Number& element) { return certify(element); });
  fill_probabilities(result.scores, result.answer.lse, visible, row);
  return true;
}

/// Calls work.operator()<Number>() with an interval type of at least `bits` digits: a ladder of
/// fixed types, each twice the one before. The last holds every score of binary64 inputs exactly
/// enough: dot products span at most 4200 binary digits.
template <class Work>
void with_interval(unsigned bits, Work&& work) {
  if (bits <= 133) return work.template operator()<Interval<40>>();
  if (bits <= 266) return work.template operator()<Interval<80>>();
  if (bits <= 532) return work.template operator()<Interval<160>>();
  if (bits <= 1063) return work.template operator()<Interval<320>>();
  if (bits <= 2127) return work.template operator()<Interval<640>>();
  if (bits <= 4253) return work.template operator()<Interval<1280>>();
  work.template operator()<Interval<2560>>();
}

/// 1 where keys and values of the range are finite; outside it 1.
inline std::vector<std::uint8_t> finite_keys(const Problem& problem, std::int64_t b,
                                             std::int64_t kv_head, KeyRange range) {
  std::vector<std::uint8_t> finite(static_cast<std::size_t>(problem.keys), 1);
  std::vector<double> scratch;
  for (std::int64_t j = range.first; j < range.last; ++j) {
    finite[static_cast<std::size_t>(j)] = key_is_finite(problem, b, kv_head, j, scratch);
  }
  return finite;
}

}  // namespace ringproof::oracle
