// Weights exp(s - m) of one tile with their error bounds, and the weighted sums of V over it.
// Lemmas 11, 14, 15 and 16 of docs/double_double.md. Included once for every target.
#include "oracle/truth/score_tile-inl.hpp"

#if defined(RINGPROOF_WEIGHT_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_WEIGHT_TILE_INL
#undef RINGPROOF_WEIGHT_TILE_INL
#else
#define RINGPROOF_WEIGHT_TILE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Words of a tile after its weights are computed: s - m takes the place of the score's high word.
enum WeightWord { kShifted = 0, kWeightLow = 1, kWeightHigh = 2 };

/// s - m, normalised for exp_dd, and the bound of its whole error (Lemma 11).
struct Exponent {
  Pair value;
  Vec error;
};
HWY_INLINE Exponent exponent_of(Pair score, Vec score_error, Vec maximum) {
  const Pair difference = two_sum(score.hi, hn::Neg(maximum));
  const Pair value = two_sum(difference.hi, hn::Add(difference.lo, score.lo));
  const Vec error = hn::Add(score_error, hn::Mul(hn::Add(hn::Abs(difference.hi), hn::Abs(score.hi)),
                                                 broadcast(bounds::kShift)));
  return {value, error};
}

/// Theorem 13 and Lemma 14: bound of |computed weight - weight| over the computed weight.
HWY_INLINE Vec weight_error(Vec exponent, Vec exponent_error) {
  const Vec exp_error = hn::Add(broadcast(bounds::kExpConstant),
                                hn::Mul(hn::Abs(exponent), broadcast(bounds::kExpSlope)));
  return hn::Mul(hn::Add(exponent_error, exp_error), broadcast(1 + 0x1p-18));
}

/// What one row needs to know while its weights are computed; vectors of eight virtual lanes.
struct WeightSums {
  Vec mass[kVirtualVectors], error[kVirtualVectors];
  Vec excess, failed;  // largest score excess; not zero where a bound does not hold
  Vec relative;        // largest relative error of a weight that is kept
};

/// Checks the bounds of one vector of exponents and gathers what they say about the row.
/// Returns which weights are to be computed; the other visible ones leave their bound behind.
HWY_INLINE Mask judge_exponents(Pair score, Vec score_error, Mask visible, const Exponent& x,
                                Vec& error, WeightSums& sums) {
  const Mask kept = hn::And(visible, hn::Ge(x.value.hi, broadcast(bounds::kExpLowest)));
  // A bound fails where the exponent is not known well, unless the weight is surely negligible.
  const Mask known = hn::Or(hn::Le(x.error, broadcast(bounds::kLargestExponentError)),
                            hn::Lt(hn::Add(x.value.hi, hn::Mul(broadcast(2), x.error)),
                                   broadcast(bounds::kExpLowest - 1)));
  const Mask sound = hn::And(known, hn::Le(x.value.hi, broadcast(1)));
  sums.failed =
      hn::Or(sums.failed, hn::IfThenElseZero(visible, hn::IfThenZeroElse(sound, broadcast(1))));
  error = hn::Add(error,
                  hn::IfThenElseZero(hn::AndNot(kept, visible), broadcast(bounds::kDroppedWeight)));
  // |score - s| <= |low word| + error; what exceeds 2^-53 |score| (Lemma 18).
  const Vec covered = hn::Mul(hn::Abs(score.hi), broadcast(bounds::kUnit * (1 - 0x1p-50)));
  const Vec excess = hn::Add(score_error, hn::Sub(hn::Abs(score.lo), covered));
  sums.excess = hn::Max(sums.excess, hn::IfThenElseZero(visible, excess));
  return kept;
}

/// Keys whose weights are computed together: one exponential alone would only wait for itself.
inline constexpr int kKeysAtOnce = 2 * kVirtualLanes;

/// Sixteen weights: reads the words of the score, writes those of the weight.
HWY_INLINE void weigh(const ExpTable& table, Vec reference, double* high, double* low,
                      double* error, WeightSums& sums) {
  const Vec nothing = broadcast(-std::numeric_limits<double>::infinity());
  constexpr int kVectors = kKeysAtOnce / kLanes;
  Pair weight[kVectors];
  Vec relative_error[kVectors], kept_ones[kVectors];
  for (int n = 0; n < kVectors; ++n) {
    const int at = n * kLanes;
    const Pair score{load(high + at), load(low + at)};
    const Vec score_error = load(error + at);
    const Mask visible = hn::Not(hn::Eq(score.hi, nothing));  // NaN counts as visible
    const Exponent x = exponent_of({hn::IfThenElse(visible, score.hi, reference), score.lo},
                                   score_error, reference);
    const Mask kept =
        judge_exponents(score, score_error, visible, x, sums.error[n % kVirtualVectors], sums);
    store(hn::IfThenElse(visible, x.value.hi, nothing), high + at);
    kept_ones[n] = hn::IfThenElseZero(kept, broadcast(1));
    relative_error[n] = weight_error(x.value.hi, x.error);
    sums.relative = hn::Max(sums.relative, hn::IfThenElseZero(kept, relative_error[n]));
    weight[n] = {hn::Min(hn::Max(x.value.hi, broadcast(bounds::kExpLowest)), broadcast(1)),
                 hn::IfThenElseZero(kept, x.value.lo)};
  }
  exp_dd(table, weight);
  for (int n = 0; n < kVectors; ++n) {
    const int at = n * kLanes, lane = n % kVirtualVectors;
    const Mask kept = hn::Ne(kept_ones[n], hn::Zero(Tag()));
    const Vec weight_high = hn::IfThenElseZero(kept, weight[n].hi);
    sums.mass[lane] = hn::Add(sums.mass[lane], weight_high);
    sums.error[lane] = hn::Add(sums.error[lane],
                               hn::IfThenElseZero(kept, hn::Mul(weight_high, relative_error[n])));
    store(hn::IfThenElseZero(kept, weight[n].lo), low + at);
    store(weight_high, error + at);
  }
}

/// Copies a tile's numbers to an array of the row, as far as the row reaches.
HWY_INLINE void copy_to_row(const double* tile, double* out, std::int64_t key, std::int64_t size) {
  for (int at = 0; at < kTileKeys; at += kLanes) {
    store_clipped(load(tile + at), out, key + at, size);
  }
}

/// Weights of one tile of row r; their sum and its error bound go to mass and mass_error (Lemma
/// 14), s - m and the weights also to log_p and p of the row, where finish_row completes them.
inline HWY_NOINLINE void weigh_tile(RowBatch& batch, std::int64_t tile, int r) {
  BatchRow& row = batch.row[r];
  double* high = batch.word(tile, kScoreHigh, r);
  double* low = batch.word(tile, kScoreLow, r);
  double* error = batch.word(tile, kScoreError, r);
  double& mass = batch.mass.data()[batch.mass_index(tile, r)];
  double& mass_error = batch.mass_error.data()[batch.mass_index(tile, r)];
  mass = mass_error = 0;
  if (std::memchr(batch.visible_tile(tile, r), 1, kTileKeys) != nullptr) {
    WeightSums sums;
    for (int n = 0; n < kVirtualVectors; ++n) sums.mass[n] = sums.error[n] = hn::Zero(Tag());
    sums.excess = sums.failed = sums.relative = hn::Zero(Tag());
    for (int at = 0; at < kTileKeys; at += kKeysAtOnce) {
      weigh(*batch.table, broadcast(row.reference), high + at, low + at, error + at, sums);
    }
    ++row.tiles;
    mass = sum_of_lanes(sums.mass) * bounds::kUpFew;
    mass_error = sum_of_lanes(sums.error) * bounds::kUpFew + bounds::kTileUnderflow;
    row.score_excess = std::max(row.score_excess, hn::GetLane(hn::MaxOfLanes(Tag(), sums.excess)));
    row.failed = row.failed || hn::GetLane(hn::MaxOfLanes(Tag(), sums.failed)) != 0;
    if (batch.keep_weights) {
      batch.relative_error.data()[tile * batch.rows + r] =
          hn::GetLane(hn::MaxOfLanes(Tag(), sums.relative));
    }
  }
  if (row.truth == nullptr) return;
  const std::int64_t key = tile * kTileKeys + row.offset, size = row.truth->keys.size();
  copy_to_row(high, row.truth->log_p.data(), key, size);
  copy_to_row(error, row.truth->p.data(), key, size);
}

/// The four sums a row keeps of every column (RowBatch::sums).
enum ColumnSum { kSumHigh = 0, kSumLow = 1, kSumMagnitude = 2, kSumError = 3 };

HWY_INLINE double* column_sum(const RowBatch& batch, ColumnSum which, int r) {
  return batch.sums.data() + (which * batch.rows + r) * batch.head->stride;
}

/// What is summed over the keys of a tile: for every row, pairs of weights times rows of numbers.
struct TileProduct {
  int rows;
  const double* high;        // [rows, 64] weights
  const double* low;         // [rows, 64]
  const double* mass;        // [rows] upper bounds: sum of |weight|, of their errors
  const double* mass_error;  // [rows] 0: the row gives the tile no weight
  std::int64_t columns, stride;
  const double* values;                     // [64, stride]
  const double* largest[HeadTruth::kRows];  // [stride] largest magnitude of a column
  double* sums;                             // [4, rows, stride] (ColumnSum)

  HWY_INLINE double* sum(ColumnSum which, int r) const {
    return sums + (which * rows + r) * stride;
  }
  /// Charges row r for one vector of columns: the errors of the weights, and `rounding` for each
  /// unit of the column. Returns a bound of the magnitude that is added.
  HWY_INLINE Vec charge(int r, std::int64_t column, Vec rounding) const {
    const Vec error = broadcast(mass_error[r]);
    const Vec most = load(largest[r] + column);
    // Nothing is added to the magnitude of a column of zeros, or by a tile without weight.
    const Mask none = hn::Eq(hn::Min(most, error), hn::Zero(Tag()));
    const Vec magnitude = hn::IfThenZeroElse(
        none, hn::Add(hn::Mul(hn::Mul(broadcast(mass[r]), most), broadcast(bounds::kUp)),
                      broadcast(bounds::kSumUnderflow)));
    double* total = sum(kSumMagnitude, r) + column;
    store(hn::Add(load(total), magnitude), total);
    total = sum(kSumError, r) + column;
    store(hn::Add(load(total), hn::IfThenZeroElse(none, hn::Mul(hn::Add(error, rounding), most))),
          total);
    return magnitude;
  }
};

/// Adds the tile's sums to those of rows [row, row + kRows), for kStep vectors of columns (Lemmas
/// 15, 16).
template <int kRows, int kStep, bool kTight>
HWY_INLINE void add_columns(const TileProduct& tile, int row, std::int64_t column) {
  constexpr double kLowGrid = 4 * kTileKeys * bounds::kUnit;
  const std::int64_t stride = tile.stride;
  const double* HWY_RESTRICT v = tile.values + column;
  const double* HWY_RESTRICT weight_high = tile.high + row * kTileKeys;
  const double* HWY_RESTRICT weight_low = tile.low + row * kTileKeys;
  Accumulator<kTight> sum[kRows][kStep];
  alignas(64) double grids[kRows * kStep * kVirtualLanes];
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kStep; ++n) {
      const Vec grid = grid_constant(tile.charge(row + r, column + n * kLanes, hn::Zero(Tag())));
      store(grid, grids + (r * kStep + n) * kVirtualLanes);
      sum[r][n].start(grid, kLowGrid);
    }
  }
  for (int j = 0; j < kTileKeys; ++j) {
    Vec high[kRows], low[kRows];
    for (int r = 0; r < kRows; ++r) {
      high[r] = broadcast(weight_high[r * kTileKeys + j]);
      low[r] = broadcast(weight_low[r * kTileKeys + j]);
    }
    for (int n = 0; n < kStep; ++n) {
      const Vec value = load(v + j * stride + n * kLanes);
      for (int r = 0; r < kRows; ++r) sum[r][n].add_weighted(high[r], low[r], value);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kStep; ++n) {
      const Vec grid = load(grids + (r * kStep + n) * kVirtualLanes);
      double* high = tile.sum(kSumHigh, row + r) + column + n * kLanes;
      double* low = tile.sum(kSumLow, row + r) + column + n * kLanes;
      const Pair total = sum[r][n].add_to({load(high), load(low)}, grid, kLowGrid);
      store(total.hi, high);
      store(total.lo, low);
    }
  }
}

/// add_columns for all rows that give the tile weight.
template <int kRows, int kStep, bool kTight>
HWY_NOINLINE void add_columns_of_rows(const TileProduct& tile, std::int64_t column) {
  for (int row = 0; row < tile.rows; row += kRows) {
    bool weighs = false;
    for (int r = row; r < row + kRows; ++r) weighs = weighs || tile.mass_error[r] != 0;
    if (weighs) add_columns<kRows, kStep, kTight>(tile, row, column);
  }
}

/// Sums of one tile for all columns. Columns are the outer loop: their part of the values stays in
/// the nearest cache for all rows.
template <int kRows, bool kTight>
HWY_INLINE void add_product(const TileProduct& tile) {
  constexpr int kStep = vectors_at_once<kRows, kTight>(4);
  std::int64_t column = 0;
  for (; column + (kStep - 1) * kLanes < tile.columns; column += kStep * kLanes) {
    add_columns_of_rows<kRows, kStep, kTight>(tile, column);
  }
  // The last columns, of ones among them: one vector at a time, so that more rows must keep the
  // additions from waiting for each other.
  constexpr int kMoreRows = kRows == 1 ? 1 : 2 * kRows;
  for (; column < tile.columns; column += kLanes) {
    if (tile.rows % kMoreRows == 0) {
      add_columns_of_rows<kMoreRows, 1, kTight>(tile, column);
    } else {
      add_columns_of_rows<kRows, 1, kTight>(tile, column);
    }
  }
}

/// Multiplies the sums of row r by exp(old - new) when a block raises its reference (Lemma 21).
inline HWY_NOINLINE void change_reference(const RowBatch& batch, int r, double from, double to) {
  const Exponent x =
      exponent_of({broadcast(from), hn::Zero(Tag())}, hn::Zero(Tag()), broadcast(to));
  const bool vanishes = !(hn::GetLane(x.value.hi) >= bounds::kExpLowest);
  Pair factor{hn::Zero(Tag()), hn::Zero(Tag())};
  Vec loss = broadcast(bounds::kDroppedWeight);
  if (!vanishes) {
    factor = exp_dd(*batch.table, x.value);
    loss =
        hn::Mul(factor.hi, hn::Add(weight_error(x.value.hi, x.error), broadcast(bounds::kScale)));
  }
  const Vec factor_up = hn::Mul(factor.hi, broadcast(bounds::kUpFew));
  for (std::int64_t column = 0; column <= batch.head->value_dim; column += kLanes) {
    double* high = column_sum(batch, kSumHigh, r) + column;
    double* low = column_sum(batch, kSumLow, r) + column;
    double* magnitude = column_sum(batch, kSumMagnitude, r) + column;
    double* error = column_sum(batch, kSumError, r) + column;
    const Pair product = multiply({load(high), load(low)}, factor);
    const Vec before = load(magnitude);
    const Mask some = hn::Ne(before, hn::Zero(Tag()));
    store(product.hi, high);
    store(product.lo, low);
    store(hn::Add(hn::Add(hn::Mul(load(error), hn::Add(factor_up, loss)), hn::Mul(before, loss)),
                  hn::IfThenElseZero(some, broadcast(bounds::kSumUnderflow))),
          error);
    store(hn::Add(hn::Mul(before, factor_up),
                  hn::IfThenElseZero(some, broadcast(bounds::kSumUnderflow))),
          magnitude);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
