// Scores of one tile of keys for the rows of a batch: error-free products accumulated against a large
// constant, then scale, softcap, bias and ALiBi in double-double, each with its error bound.
// Lemmas 5-10 of docs/double_double.md. Included once for every target.
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

#include "oracle/truth/error_bounds.hpp"
#include "oracle/truth/row_batch.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Words of a tile (RowBatch::words) while scores are computed.
enum ScoreWord { kScoreHigh = 0, kScoreLow = 1, kScoreError = 2 };

/// Upper bounds of sum_t |q_t k_t| for 16 keys: plain sums, made larger than their rounding (Lemma 4).
template <int kRows>
HWY_INLINE void dot_magnitudes(const double* HWY_RESTRICT q,  // [D, kRows]
                               const double* HWY_RESTRICT k,  // [D, 16]
                               std::int64_t dim, double underflow,
                               double* HWY_RESTRICT out) {  // [kRows, 16]
  constexpr int kStep = kLanes * 2 <= kSubtileKeys ? 2 : 1;
  for (int column = 0; column < kSubtileKeys; column += kStep * kLanes) {
    Vec sum[kRows][kStep];
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) sum[r][n] = hn::Zero(Tag());
    }
    for (std::int64_t t = 0; t < dim; ++t) {
      Vec key[kStep];
      for (int n = 0; n < kStep; ++n) {
        key[n] = hn::Abs(load(k + t * kSubtileKeys + column + n * kLanes));
      }
      for (int r = 0; r < kRows; ++r) {
        const Vec query = broadcast(q[t * kRows + r]);
        for (int n = 0; n < kStep; ++n) sum[r][n] = fused_add(query, key[n], sum[r][n]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) {
        store(hn::Add(hn::Mul(sum[r][n], broadcast(bounds::kUp)), broadcast(underflow)),
              out + r * kSubtileKeys + column + n * kLanes);
      }
    }
  }
}

/// C of Lemma 5: a power of two with C/2 > magnitude, not below the smallest grid.
HWY_INLINE Vec grid_constant(Vec magnitude) {
  return hn::Max(hn::Mul(broadcast(4), power_of_two_below(magnitude)),
                 broadcast(bounds::kSmallestGrid));
}

/// Running sums of error-free products: `high` on the grid of C, the residuals in `low`, and in `tight`
/// what the sum of the residuals itself loses in `lowest`.
template <bool kTight>
struct Accumulator {
  Vec high, low, lowest;

  HWY_INLINE void start(Vec grid, double low_grid) {
    high = hn::Mul(grid, broadcast(1.5));
    low = kTight ? hn::Mul(grid, broadcast(1.5 * low_grid)) : hn::Zero(Tag());
    lowest = hn::Zero(Tag());
  }
  HWY_INLINE void add_low(Vec residual) {
    if (kTight) {
      const Vec sum = hn::Add(low, residual);
      lowest = hn::Add(lowest, hn::Sub(residual, hn::Sub(sum, low)));
      low = sum;
    } else {
      low = hn::Add(low, residual);
    }
  }
  /// Adds a b (Lemma 5).
  HWY_INLINE void add_product(Vec a, Vec b) {
    const Vec sum = fused_add(a, b, high);
    const Vec part = hn::Sub(sum, high);
    high = sum;
    add_low(fused_subtract(a, b, part));
  }
  /// Adds (p_high + p_low) v (Lemma 15).
  HWY_INLINE void add_weighted(Vec p_high, Vec p_low, Vec v) {
    const Vec sum = fused_add(p_high, v, high);
    const Vec part = hn::Sub(sum, high);
    high = sum;
    const Vec residual = fused_subtract(p_high, v, part);
    if (kTight) {
      add_low(fused_add(p_low, v, residual));
    } else {
      low = fused_add(p_low, v, hn::Add(low, residual));
    }
  }
  /// The sum: exact but for the errors of Lemma 6 (fast) or 7 (tight).
  HWY_INLINE Pair result(Vec grid, double low_grid) const {
    const Vec high_part = hn::Sub(high, hn::Mul(grid, broadcast(1.5)));
    if (!kTight) return two_sum(high_part, low);
    const Vec low_part = hn::Sub(low, hn::Mul(grid, broadcast(1.5 * low_grid)));
    const Pair sum = two_sum(high_part, low_part);
    return {sum.hi, hn::Add(sum.lo, lowest)};
  }
};

/// Constants of the score rule of a batch.
struct ScoreConstants {
  double low_grid;      // C' / C of Lemma 7
  double dot_error;     // of C, Lemma 6 or 7
  double dot_relative;  // of |q.k|, Lemma 7
  double scale_hi, scale_lo, scale_magnitude;
  double softcap;
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
  return constants;
}

struct Score {
  Pair value;
  Vec error;
  Vec scaled;  // before softcap and additions
  Vec capped;
};

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

/// One vector of scores of row r, finished and stored. `at`: first key, counted from the tile.
HWY_INLINE void finish_scores(const RowBatch& batch, const ScoreConstants& constants,
                              std::int64_t tile, int r, int at, Pair dot, Vec magnitude, Vec grid) {
  RowTruth& truth = *batch.row[r].truth;
  const std::int64_t index = batch.tile_index(tile, r) + at;
  const Vec dot_error = hn::Add(hn::Mul(grid, broadcast(constants.dot_error)),
                                hn::Mul(hn::Abs(dot.hi), broadcast(constants.dot_relative)));
  Score score = scaled_score(constants, *batch.table, dot, dot_error);
  // Where every product is zero the score is zero exactly, so far.
  score.error = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(Tag())), score.error);
  if (batch.has_bias) add_to_score(score, {load(batch.bias.data() + index), hn::Zero(Tag())});
  if (batch.has_alibi) {
    add_to_score(score, {load(batch.alibi.data() + index), load(batch.alibi_low.data() + index)});
  }
  const Mask bounded = hn::Lt(magnitude, broadcast(bounds::kLargest));
  store(score.value.hi, batch.word(tile, kScoreHigh, r) + at);
  store(score.value.lo, batch.word(tile, kScoreLow, r) + at);
  store(hn::IfThenElse(bounded, score.error, broadcast(std::numeric_limits<double>::infinity())),
        batch.word(tile, kScoreError, r) + at);
  const std::int64_t key = tile * kTileKeys + at + batch.row[r].offset;
  const std::int64_t size = truth.keys.size();
  store_clipped(score.scaled, truth.dot.data(), key, size);
  store_clipped(hn::Mul(magnitude, broadcast(constants.scale_magnitude * bounds::kUpFew)),
                truth.abs_dot.data(), key, size);
  if (constants.softcap > 0) store_clipped(score.capped, truth.capped.data(), key, size);
  store_clipped(score.value.hi, truth.score.data(), key, size);
}

/// Overwrites what was computed for invisible keys (all of it, if the kernels skipped the subtile).
template <int kRows>
HWY_INLINE void hide_invisible(const RowBatch& batch, std::int64_t tile, int first, int count) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  for (int r = 0; r < kRows; ++r) {
    const std::uint8_t* visible = batch.visible_tile(tile, r);
    if (std::memchr(visible + first, 0, static_cast<std::size_t>(count)) == nullptr) continue;
    RowTruth* truth = batch.row[r].truth;
    for (int at = first; at < first + count; ++at) {
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
      truth->score[n] = kNothing;
    }
  }
}

/// Scores of 16 keys for all rows of the batch.
template <int kRows, bool kTight>
HWY_NOINLINE void score_subtile(const RowBatch& batch, const ScoreConstants& constants,
                                std::int64_t tile, int first) {
  // Enough independent chains of additions to hide their latency: four rows, or four vectors of keys.
  constexpr int kStep = kRows > 1 ? 1 : (4 * kLanes <= kSubtileKeys ? 4 : kSubtileKeys / kLanes);
  const PackedHead& head = *batch.head;
  const std::int64_t dim = head.head_dim;
  const std::int64_t subtile =
      (batch.first_tile + tile) * (kTileKeys / kSubtileKeys) + first / kSubtileKeys;
  const double* HWY_RESTRICT k = head.k.data() + subtile * dim * kSubtileKeys;
  const double* HWY_RESTRICT q = batch.q.data();
  alignas(64) double magnitudes[kRows * kSubtileKeys];
  dot_magnitudes<kRows>(batch.q_magnitude.data(), k, dim, batch.dot_underflow, magnitudes);
  for (int column = 0; column < kSubtileKeys; column += kStep * kLanes) {
    Accumulator<kTight> sum[kRows][kStep];
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) {
        const Vec magnitude = load(magnitudes + r * kSubtileKeys + column + n * kLanes);
        sum[r][n].start(grid_constant(magnitude), constants.low_grid);
      }
    }
    for (std::int64_t t = 0; t < dim; ++t) {
      Vec key[kStep];
      for (int n = 0; n < kStep; ++n) key[n] = load(k + t * kSubtileKeys + column + n * kLanes);
      for (int r = 0; r < kRows; ++r) {
        const Vec query = broadcast(q[t * kRows + r]);
        for (int n = 0; n < kStep; ++n) sum[r][n].add_product(query, key[n]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      if (batch.row[r].truth == nullptr) continue;
      for (int n = 0; n < kStep; ++n) {
        const int at = column + n * kLanes;
        const Vec magnitude = load(magnitudes + r * kSubtileKeys + at);
        const Vec grid = grid_constant(magnitude);
        finish_scores(batch, constants, tile, r, first + at,
                      sum[r][n].result(grid, constants.low_grid), magnitude, grid);
      }
    }
  }
}

/// Scores of tile `tile` of the batch; subtiles no row sees are skipped.
template <int kRows, bool kTight>
HWY_INLINE void score_tile(const RowBatch& batch, const ScoreConstants& constants,
                           std::int64_t tile) {
  for (int first = 0; first < kTileKeys; first += kSubtileKeys) {
    bool seen = false;
    for (int r = 0; r < kRows; ++r) {
      seen = seen || std::memchr(batch.visible_tile(tile, r) + first, 1, kSubtileKeys) != nullptr;
    }
    if (seen) score_subtile<kRows, kTight>(batch, constants, tile, first);
    hide_invisible<kRows>(batch, tile, first, kSubtileKeys);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
