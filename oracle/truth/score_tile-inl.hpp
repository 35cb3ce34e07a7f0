// Scores of one tile of keys for the rows of a batch: q.k, then scale, softcap, bias and ALiBi in
// double-double, each with its error bound. Lemmas 6 to 10 of docs/double_double.md. Included once
// for every target.
#include "oracle/truth/dot_parts-inl.hpp"
#include "oracle/truth/exp_dd-inl.hpp"

#if defined(RINGPROOF_SCORE_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_SCORE_TILE_INL
#undef RINGPROOF_SCORE_TILE_INL
#else
#define RINGPROOF_SCORE_TILE_INL
#endif

#include <algorithm>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Words of a tile (RowBatch::words) while scores are computed.
enum ScoreWord { kScoreHigh = 0, kScoreLow = 1, kScoreError = 2 };

/// Constants of the score rule of a batch.
struct ScoreConstants {
  double low_grid;      // C' / C of Lemma 7
  double dot_error;     // of C, Lemma 6 or 7
  double dot_relative;  // of |q.k|, Lemma 7
  double scale_hi, scale_lo, scale_magnitude;
  double softcap;
  bool with_factor;  // the backward pass needs the derivative of the softcap
};

HWY_INLINE ScoreConstants score_constants(const RowBatch& batch) {
  const PackedHead& head = *batch.head;
  const auto dim = static_cast<double>(head.head_dim);
  double power = 1;
  while (power < dim) power *= 2;
  const bool tight = head.precision == Precision::tight;
  ScoreConstants constants{};
  constants.low_grid = power * 0x1p-51;
  constants.dot_error =
      tight ? bounds::dot_tight(dim) + (head.exact_products ? 0 : bounds::dot_inexact(dim))
            : bounds::dot_fast(dim);
  constants.dot_relative = tight ? bounds::kUpFew * bounds::kUnitSquared : 0;
  constants.scale_hi = head.scale.hi;
  constants.scale_lo = head.scale.lo;
  constants.scale_magnitude = std::abs(head.scale.hi) * bounds::kUpFew;
  constants.softcap = batch.softcap;
  constants.with_factor = batch.softcap > 0 && batch.keep_weights;
  return constants;
}

struct Score {
  Pair value;
  Vec error;
  Vec scaled;  // before softcap and additions
  Vec capped;
  Pair factor;  // derivative of the softcap, if the constants ask for it
  Vec factor_error;
};

/// Lemma 22: 1 - tanh^2, the derivative of the softcap. `tanh_error` bounds the error of `tanh`.
HWY_INLINE void derive_softcap(Score& score, Pair tanh, Vec tanh_error) {
  const Pair square = multiply(tanh, tanh);
  score.factor = add({broadcast(1), hn::Zero(Tag())}, {hn::Neg(square.hi), hn::Neg(square.lo)});
  // Both the factor and what is computed for it lie in [0, 1], up to rounding.
  score.factor_error =
      hn::Min(fused_add(tanh_error, hn::Add(broadcast(2 * bounds::kUpFew), tanh_error),
                        broadcast(bounds::kFactor)),
              broadcast(2));
}

/// scale and softcap (Lemmas 8, 9). `dot_error` bounds the error of `dot`.
HWY_INLINE Score scaled_score(const ScoreConstants& constants, const ExpTable& table, Pair dot,
                              Vec dot_error) {
  Score score;
  score.value = multiply(dot, {broadcast(constants.scale_hi), broadcast(constants.scale_lo)});
  score.scaled = score.value.hi;
  score.error = hn::Add(hn::Mul(dot_error, broadcast(constants.scale_magnitude)),
                        hn::Add(hn::Mul(hn::Abs(score.scaled), broadcast(bounds::kScale)),
                                broadcast(bounds::kScoreUnderflow)));
  if (constants.softcap > 0) {
    const Pair cap{broadcast(constants.softcap), hn::Zero(Tag())};
    const Vec sign = hn::CopySign(broadcast(1), score.scaled);
    const Pair magnitude{hn::Mul(sign, score.value.hi), hn::Mul(sign, score.value.lo)};
    const Pair tanh = tanh_of_magnitude(table, divide(magnitude, cap));
    const Pair product = multiply(tanh, cap);
    score.value = {hn::Mul(sign, product.hi), hn::Mul(sign, product.lo)};
    score.error = hn::Add(score.error, broadcast(constants.softcap * bounds::kSoftcap));
    if (constants.with_factor) {
      derive_softcap(score, tanh, hn::Mul(hn::Div(score.error, cap.hi), broadcast(bounds::kUpFew)));
    }
  }
  score.capped = score.value.hi;
  return score;
}

/// Lemma 10.
HWY_INLINE void add_to_score(Score& score, Pair addend) {
  score.error = hn::Add(score.error, hn::Mul(hn::Add(hn::Abs(score.value.hi), hn::Abs(addend.hi)),
                                             broadcast(bounds::kAddition)));
  score.value = add(score.value, addend);
}

/// Stores the part of a vector that lies inside [0, size).
HWY_INLINE void store_clipped(Vec v, double* out, std::int64_t at, std::int64_t size) {
  if (at >= 0 && at + kLanes <= size) {
    hn::StoreU(v, Tag(), out + at);
    return;
  }
  alignas(64) double lane[kVirtualLanes];
  store(v, lane);
  for (int n = 0; n < kLanes; ++n) {
    if (at + n >= 0 && at + n < size) out[at + n] = lane[n];
  }
}

/// The part of an array that a vector at `at` covers; 0 outside [0, size).
HWY_INLINE Vec load_clipped(const double* in, std::int64_t at, std::int64_t size) {
  if (at >= 0 && at + kLanes <= size) return hn::LoadU(Tag(), in + at);
  alignas(64) double lane[kVirtualLanes];
  for (int n = 0; n < kLanes; ++n) lane[n] = at + n >= 0 && at + n < size ? in[at + n] : 0;
  return load(lane);
}

/// One vector of scores of row r, finished and stored. `at`: first key, counted from the tile.
HWY_INLINE void finish_scores(const RowBatch& batch, const ScoreConstants& constants,
                              std::int64_t tile, int r, int at, Pair dot, Vec magnitude,
                              Vec dot_error) {
  const BatchRow& row = batch.row[r];
  RowTruth& truth = *row.truth;
  const std::int64_t key = tile * kTileKeys + at + row.offset;
  const std::int64_t size = truth.keys.size();
  Score score = scaled_score(constants, *batch.table, dot, dot_error);
  if (constants.with_factor) {
    store(score.factor.hi, batch.factor_word(tile, 0, r) + at);
    store(score.factor.lo, batch.factor_word(tile, 1, r) + at);
    store(score.factor_error, batch.factor_word(tile, 2, r) + at);
  }
  // Where every product is zero the score is zero exactly, so far.
  score.error = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(Tag())), score.error);
  if (!truth.bias.empty()) {
    add_to_score(score, {load_clipped(truth.bias.data(), key, size), hn::Zero(Tag())});
  }
  if (row.alibi_low != nullptr) {
    add_to_score(score, {load_clipped(truth.alibi.data(), key, size),
                         load_clipped(row.alibi_low, key, size)});
  }
  const Mask bounded = hn::Lt(magnitude, broadcast(bounds::kLargest));
  store(score.value.hi, batch.word(tile, kScoreHigh, r) + at);
  store(score.value.lo, batch.word(tile, kScoreLow, r) + at);
  store(hn::IfThenElse(bounded, score.error, broadcast(std::numeric_limits<double>::infinity())),
        batch.word(tile, kScoreError, r) + at);
  store_clipped(score.scaled, truth.dot.data(), key, size);
  // The smallest number covers what the product loses where it underflows.
  store_clipped(fused_add(magnitude, broadcast(constants.scale_magnitude * bounds::kUpFew),
                          hn::Min(magnitude, broadcast(0x1p-1074))),
                truth.abs_dot.data(), key, size);
  if (constants.softcap > 0) store_clipped(score.capped, truth.capped.data(), key, size);
  store_clipped(score.value.hi, truth.score.data(), key, size);
}

/// Overwrites what was computed for invisible keys (all of it, if the kernels skipped the subtile).
HWY_INLINE void hide_invisible(const RowBatch& batch, std::int64_t tile, int r, int first) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const std::uint8_t* visible = batch.visible_tile(tile, r);
  if (std::memchr(visible + first, 0, kSubtileKeys) == nullptr) return;
  RowTruth* truth = batch.row[r].truth;
  for (int at = first; at < first + kSubtileKeys; ++at) {
    if (visible[at] != 0) continue;
    batch.word(tile, kScoreHigh, r)[at] = kNothing;
    batch.word(tile, kScoreLow, r)[at] = 0;
    batch.word(tile, kScoreError, r)[at] = 0;
    if (truth == nullptr) continue;
    const std::int64_t key = tile * kTileKeys + at + batch.row[r].offset;
    if (key < 0 || key >= truth->keys.size()) continue;
    const auto n = static_cast<std::size_t>(key);
    truth->dot[n] = truth->abs_dot[n] = 0;
    if (!truth->capped.empty()) truth->capped[n] = 0;
    if (!truth->alibi.empty()) truth->alibi[n] = 0;
    truth->score[n] = kNothing;
  }
}

/// Lemma 6b: which sums of q k are exact in any order, from bounds of their magnitudes.
HWY_INLINE Mask sums_are_exact(Vec magnitude, Vec k_limit, double q_unit) {
  const Vec limit = hn::Mul(k_limit, broadcast(q_unit));
  const Mask too_small = hn::Lt(limit, broadcast(bounds::kSmallestExactLimit));
  return hn::AndNot(too_small, hn::Le(magnitude, limit));
}

/// The same for all of 16 keys and kRows rows.
template <int kRows>
HWY_INLINE bool all_sums_are_exact(const double* magnitudes, const double* k_limit,
                                   const BatchRow* rows) {
  Mask all = hn::Eq(hn::Zero(Tag()), hn::Zero(Tag()));
  for (int r = 0; r < kRows; ++r) {
    for (int at = 0; at < kSubtileKeys; at += kLanes) {
      all = hn::And(all, sums_are_exact(load(magnitudes + r * kSubtileKeys + at),
                                        load(k_limit + at), rows[r].q_unit));
    }
  }
  return hn::AllTrue(Tag(), all);
}

/// Scores of 16 keys for rows [row, row + kRows) of the batch.
template <int kRows, bool kTight>
HWY_NOINLINE void score_subtile(const RowBatch& batch, const ScoreConstants& constants,
                                std::int64_t tile, int first, int row) {
  const PackedHead& head = *batch.head;
  const std::int64_t subtile =
      (batch.first_tile + tile) * (kTileKeys / kSubtileKeys) + first / kSubtileKeys;
  const double* k = head.k.data() + subtile * head.head_dim * kSubtileKeys;
  const double* q = batch.q.data() + row;
  int cut = 0;
  for (int r = row; !kTight && head.cut && r < row + kRows; ++r) cut += is_cut(batch, subtile, r);
  if (cut != 0 && cut != kRows) {  // one at a time, each its own way
    for (int r = row; r < row + kRows; ++r) {
      score_subtile<1, kTight>(batch, constants, tile, first, r);
    }
    return;
  }
  alignas(64) double magnitudes[kRows * kSubtileKeys];
  alignas(64) double high[kRows * kSubtileKeys], low[kRows * kSubtileKeys] = {};
  dot_magnitudes<kRows>(batch.q_magnitude.data() + row, batch.rows, k, head.head_dim, magnitudes);
  const double* k_limit = head.k_limit.data() + subtile * kSubtileKeys;
  // All three ways give the same bits where a sum is exact: the company of a row must not show.
  if (all_sums_are_exact<kRows>(magnitudes, k_limit, batch.row + row)) {
    exact_dot_products<kRows>(q, batch.rows, k, head.head_dim, high);
  } else if (cut != 0) {
    cut_dot_products<kRows>(batch, subtile, row, magnitudes, high, low);
  } else {
    dot_products<kRows, kTight>(q, batch.rows, k, head.head_dim, constants.low_grid, magnitudes,
                                high, low);
  }
  for (int r = 0; r < kRows; ++r) {
    if (batch.row[row + r].truth == nullptr) continue;
    for (int column = 0; column < kSubtileKeys; column += kLanes) {
      const int at = r * kSubtileKeys + column;
      const Vec magnitude =
          hn::Add(load(magnitudes + at), broadcast(batch.row[row + r].dot_underflow));
      const Pair dot{load(high + at), load(low + at)};
      const Vec dot_error =
          hn::Add(hn::Mul(grid_constant(magnitude), broadcast(constants.dot_error)),
                  hn::Mul(hn::Abs(dot.hi), broadcast(constants.dot_relative)));
      const Mask exact =
          sums_are_exact(magnitude, load(k_limit + column), batch.row[row + r].q_unit);
      finish_scores(batch, constants, tile, row + r, first + column, dot, magnitude,
                    hn::IfThenZeroElse(exact, dot_error));
    }
  }
}

/// Scores of one tile for all rows of the batch; subtiles that kRows neighbours do not see are
/// skipped.
template <int kRows, bool kTight>
HWY_INLINE void score_tile(const RowBatch& batch, const ScoreConstants& constants,
                           std::int64_t tile) {
  for (int first = 0; first < kTileKeys; first += kSubtileKeys) {
    for (int row = 0; row < batch.rows; row += kRows) {
      bool seen = false;
      for (int r = row; r < row + kRows; ++r) {
        seen = seen || std::memchr(batch.visible_tile(tile, r) + first, 1, kSubtileKeys) != nullptr;
      }
      if (seen) score_subtile<kRows, kTight>(batch, constants, tile, first, row);
      for (int r = row; r < row + kRows; ++r) hide_invisible(batch, tile, r, first);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
