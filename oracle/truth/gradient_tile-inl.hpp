// The backward pass of one tile of keys for the rows of a batch: dP = dO.v, P from the weights,
// dS = P (dP - D + dL) f, each with its error bound. Lemmas 22 to 25 of docs/backward_truth.md.
// Included once for every target.
#include "oracle/truth/gradient_batch.hpp"
#include "oracle/truth/row_finish-inl.hpp"

#if defined(RINGPROOF_GRADIENT_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_GRADIENT_TILE_INL
#undef RINGPROOF_GRADIENT_TILE_INL
#else
#define RINGPROOF_GRADIENT_TILE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Constants of dP (Lemmas 6, 7).
struct DotConstants {
  double low_grid;  // C' / C of Lemma 7
  double error;     // of C
  double relative;  // of |dP|
};

HWY_INLINE DotConstants dot_constants(std::int64_t dim, bool tight, bool exact_products) {
  const auto terms = static_cast<double>(dim);
  double power = 1;
  while (power < terms) power *= 2;
  DotConstants constants{};
  constants.low_grid = power * 0x1p-51;
  constants.error =
      tight ? bounds::dot_tight(terms) + (exact_products ? 0 : bounds::dot_inexact(terms))
            : bounds::dot_fast(terms);
  constants.relative = tight ? bounds::kUpFew * bounds::kUnitSquared : 0;
  return constants;
}

/// dP of 16 keys for rows [row, row + kRows).
template <int kRows, bool kTight>
HWY_NOINLINE void dp_subtile(const GradientBatch& batch, const DotConstants& constants,
                             std::int64_t tile, int first, int row) {
  const RowBatch& forward = *batch.forward;
  const std::int64_t dim = forward.head->value_dim;
  const std::int64_t subtile =
      (forward.first_tile + tile) * (kTileKeys / kSubtileKeys) + first / kSubtileKeys;
  const double* v = batch.head->v.data() + subtile * dim * kSubtileKeys;
  alignas(64) double magnitudes[kRows * kSubtileKeys];
  alignas(64) double high[kRows * kSubtileKeys], low[kRows * kSubtileKeys];
  dot_magnitudes<kRows>(batch.dout_magnitude.data() + row, forward.rows, v, dim, magnitudes);
  dot_products<kRows, kTight>(batch.dout.data() + row, forward.rows, v, dim, constants.low_grid,
                              magnitudes, high, low);
  for (int r = 0; r < kRows; ++r) {
    const double underflow = batch.row[row + r].dp_underflow;
    double* to_high = batch.word(kDpHigh, row + r) + first;
    double* to_low = batch.word(kDpLow, row + r) + first;
    double* to_magnitude = batch.word(kDpMagnitude, row + r) + first;
    for (int at = 0; at < kSubtileKeys; ++at) {
      to_high[at] = high[r * kSubtileKeys + at];
      to_low[at] = low[r * kSubtileKeys + at];
      to_magnitude[at] = magnitudes[r * kSubtileKeys + at] + underflow;
    }
  }
}

template <int kRows, bool kTight>
HWY_INLINE void dp_tile(const GradientBatch& batch, const DotConstants& constants,
                        std::int64_t tile) {
  const RowBatch& forward = *batch.forward;
  for (int first = 0; first < kTileKeys; first += kSubtileKeys) {
    for (int row = 0; row < forward.rows; row += kRows) {
      bool seen = false;
      for (int r = row; r < row + kRows; ++r) {
        seen =
            seen || std::memchr(forward.visible_tile(tile, r) + first, 1, kSubtileKeys) != nullptr;
      }
      if (seen) dp_subtile<kRows, kTight>(batch, constants, tile, first, row);
    }
  }
}

/// A pair and a bound of its error.
struct Bounded {
  Pair value;
  Vec error;
};

HWY_INLINE Pair seen_only(Mask visible, Pair x) {
  return {hn::IfThenElseZero(visible, x.hi), hn::IfThenElseZero(visible, x.lo)};
}

/// Lemma 24: x y, where |y.value| is at most about 2^960.
HWY_INLINE Bounded product(const Bounded& x, const Bounded& y) {
  const Vec size = hn::Add(hn::Abs(y.value.hi), y.error);
  const Vec both =
      hn::Add(hn::Mul(hn::Abs(x.value.hi), fused_add(size, broadcast(bounds::kProduct), y.error)),
              hn::Mul(x.error, size));
  const Mask some = hn::Ne(size, hn::Zero(Tag()));
  return {multiply(x.value, y.value),
          hn::IfThenElseZero(
              some, fused_add(both, broadcast(bounds::kUpFew), broadcast(bounds::kTileUnderflow)))};
}

/// The largest part of an error that 2^-53 of the number does not cover (Lemma 18).
HWY_INLINE Vec beyond_rounding(const Bounded& x) {
  const Vec covered = hn::Mul(hn::Abs(x.value.hi), broadcast(bounds::kUnit * (1 - 0x1p-50)));
  return hn::Add(x.error, hn::Sub(hn::Abs(x.value.lo), covered));
}

/// What one row knows of a tile before its keys are visited.
struct RowOfTile {
  Pair weight_factor;
  Vec relative_error;  // of p, where its weight was kept
  Bounded shift;       // dL - D
  std::int64_t key, size;
};

/// The gradients of one vector of keys, beginning with key `at` of the tile.
struct KeyGradientsOfRow {
  Mask visible;
  Bounded p, dp, dbias, factor, ds;
};

HWY_INLINE KeyGradientsOfRow gradients_of_keys(const GradientBatch& batch,
                                               const DotConstants& constants, const RowOfTile& row,
                                               std::int64_t tile, int r, int at) {
  const RowBatch& forward = *batch.forward;
  const Vec nothing = broadcast(-std::numeric_limits<double>::infinity());
  KeyGradientsOfRow g;
  g.visible = hn::Not(hn::Eq(load(forward.word(tile, kShifted, r) + at), nothing));
  // Lemma 23.
  g.p.value = multiply(
      {load(forward.word(tile, kWeightHigh, r) + at), load(forward.word(tile, kWeightLow, r) + at)},
      row.weight_factor);
  g.p.error = hn::IfThenElseZero(g.visible, fused_add(g.p.value.hi, row.relative_error,
                                                      broadcast(bounds::kDroppedProbability)));
  g.dp.value =
      seen_only(g.visible, {load(batch.word(kDpHigh, r) + at), load(batch.word(kDpLow, r) + at)});
  const Vec magnitude = hn::IfThenElseZero(g.visible, load(batch.word(kDpMagnitude, r) + at));
  g.dp.error = fused_add(grid_constant(magnitude), broadcast(constants.error),
                         hn::Mul(hn::Abs(g.dp.value.hi), broadcast(constants.relative)));
  g.dp.error = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(Tag())), g.dp.error);
  // Lemma 25: dP - D + dL, times p, times the derivative of the softcap.
  Bounded t;
  t.value = add(g.dp.value, row.shift.value);
  t.error = hn::Add(hn::Add(g.dp.error, row.shift.error),
                    hn::Mul(hn::Add(hn::Abs(g.dp.value.hi), hn::Abs(row.shift.value.hi)),
                            broadcast(bounds::kAddition)));
  g.dbias = product(g.p, t);
  g.dbias.value = seen_only(g.visible, g.dbias.value);
  g.dbias.error = hn::IfThenElseZero(g.visible, g.dbias.error);
  g.ds = g.dbias;
  if (forward.softcap > 0) {
    g.factor.value = seen_only(g.visible, {load(forward.factor_word(tile, 0, r) + at),
                                           load(forward.factor_word(tile, 1, r) + at)});
    g.factor.error = hn::IfThenElseZero(g.visible, load(forward.factor_word(tile, 2, r) + at));
    g.ds = product(g.factor, g.dbias);
  }
  return g;
}

HWY_INLINE void store_certified(const Bounded& x, Certified* out, std::int64_t at,
                                std::int64_t size) {
  alignas(64) double hi[kVirtualLanes], lo[kVirtualLanes], error[kVirtualLanes];
  store(x.value.hi, hi);
  store(x.value.lo, lo);
  store(x.error, error);
  for (int n = 0; n < kLanes; ++n) {
    if (at + n >= 0 && at + n < size) out[at + n] = {hi[n], lo[n], error[n]};
  }
}

/// What RowGradients keeps of the keys.
HWY_INLINE void keep_keys(const GradientBatch& batch, const RowOfTile& row,
                          const KeyGradientsOfRow& g, RowGradients& gradients, int r, int at) {
  const std::int64_t key = row.key + at, size = row.size;
  store_clipped(g.dp.value.hi, gradients.dp.data(), key, size);
  store_clipped(hn::IfThenElseZero(g.visible, load(batch.word(kDpMagnitude, r) + at)),
                gradients.abs_dp.data(), key, size);
  store_clipped(g.ds.value.hi, gradients.ds.data(), key, size);
  if (batch.isolated) store_clipped(g.p.value.hi, gradients.p.data(), key, size);
  if (!gradients.factor.empty()) {
    store_clipped(g.factor.value.hi, gradients.factor.data(), key, size);
  }
  if (!gradients.dbias.empty()) store_certified(g.dbias, gradients.dbias.data(), key, size);
}

HWY_INLINE void add_to_key_sum(const GradientBatch& batch, KeySum which, int at, Vec addend) {
  double* sum = batch.key_sums.data() + which * kTileKeys + at;
  store(hn::Add(load(sum), addend), sum);
}

/// Zero weights for a row that does not take part or does not see the tile.
HWY_INLINE void give_no_weight(const GradientBatch& batch, int r) {
  for (const int which : {kPHigh, kPLow, kDsHigh, kDsLow}) {
    std::fill_n(batch.word(which, r), kTileKeys, 0.0);
  }
  batch.mass.data()[r] = batch.mass_error.data()[r] = 0;
}

/// P and dS of one tile of row r: their pairs to the words of the tile, sums of their magnitudes
/// and errors over the row and over each key.
inline HWY_NOINLINE void gradient_row(GradientBatch& batch, const DotConstants& constants,
                                      std::int64_t tile, int r) {
  const RowBatch& forward = *batch.forward;
  GradientRow& row = batch.row[r];
  if (row.gradients == nullptr ||
      std::memchr(forward.visible_tile(tile, r), 1, kTileKeys) == nullptr) {
    return give_no_weight(batch, r);
  }
  const std::int64_t block = tile / kBlockTiles;
  const double relative = forward.relative_error.data()[tile * forward.rows + r] +
                          *batch.factor_of(block, 2, r) + bounds::kProbability;
  const RowOfTile known{
      {broadcast(*batch.factor_of(block, 0, r)), broadcast(*batch.factor_of(block, 1, r))},
      broadcast(relative * (1 + 0x1p-18)),
      {{broadcast(row.shift.hi), broadcast(row.shift.lo)}, broadcast(row.shift.radius)},
      tile * kTileKeys + forward.row[r].offset,
      row.truth->keys.size()};
  Vec mass[kVirtualVectors], error[kVirtualVectors];
  for (int n = 0; n < kVirtualVectors; ++n) mass[n] = error[n] = hn::Zero(Tag());
  Vec dp_excess = hn::Zero(Tag()), ds_excess = hn::Zero(Tag());
  for (int at = 0; at < kTileKeys; at += kLanes) {
    const KeyGradientsOfRow g = gradients_of_keys(batch, constants, known, tile, r, at);
    store(g.p.value.hi, batch.word(kPHigh, r) + at);
    store(g.p.value.lo, batch.word(kPLow, r) + at);
    store(g.ds.value.hi, batch.word(kDsHigh, r) + at);
    store(g.ds.value.lo, batch.word(kDsLow, r) + at);
    const Vec magnitude = hn::Abs(g.ds.value.hi);
    const int n = at / kLanes % kVirtualVectors;
    mass[n] = hn::Add(mass[n], magnitude);
    error[n] = hn::Add(error[n], g.ds.error);
    add_to_key_sum(batch, kPMass, at, g.p.value.hi);
    add_to_key_sum(batch, kPError, at, g.p.error);
    add_to_key_sum(batch, kDsMass, at, magnitude);
    add_to_key_sum(batch, kDsError, at, g.ds.error);
    dp_excess = hn::Max(dp_excess, beyond_rounding(g.dp));
    ds_excess = hn::Max(ds_excess, beyond_rounding(g.ds));
    keep_keys(batch, known, g, *row.gradients, r, at);
  }
  batch.mass.data()[r] = sum_of_lanes(mass) * bounds::kUpFew;
  batch.mass_error.data()[r] = sum_of_lanes(error) * bounds::kUpFew;
  row.dp_excess = std::max(row.dp_excess, hn::GetLane(hn::MaxOfLanes(Tag(), dp_excess)));
  row.ds_excess = std::max(row.ds_excess, hn::GetLane(hn::MaxOfLanes(Tag(), ds_excess)));
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
