// The double-double backward pass of a batch of rows whose forward pass has kept its weights: tile
// by tile dP, P and dS, then dQ, dK and dV (docs/backward_truth.md). Compiled once for every SIMD
// target of the platform and dispatched at run time; every target returns the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/truth/gradient_kernel.cpp"
// Also the targets that a better baseline would replace: tests compare all of them.
#define HWY_COMPILE_ALL_ATTAINABLE
// Vectors of unknown size cannot be members or array elements; those machines use NEON.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
//
#include "oracle/truth/key_sum-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// exp(x - m) / denominator, or exp(x - L) of a given L: what turns a weight at the reference x
/// into a probability, with its relative error. 0 where it vanishes: the probability is then below
/// kDroppedProbability.
struct Factor {
  ScalarPair value;
  double relative_error;
};
HWY_INLINE Factor factor_at(const GradientBatch& batch, int r, double x) {
  const BatchRow& row = batch.forward->row[r];
  const Certified& given = batch.row[r].lse;
  const Exponent exponent =
      batch.isolated
          ? exponent_of({broadcast(-given.hi), broadcast(-given.lo)}, broadcast(given.radius),
                        broadcast(-x))
          : exponent_of({broadcast(x), hn::Zero(Tag())}, hn::Zero(Tag()), broadcast(row.reference));
  if (!(hn::GetLane(exponent.value.hi) >= bounds::kExpLowest)) return {{0, 0}, 0};
  Pair value = exp_dd(*batch.forward->table, exponent.value);
  // Two numbers have an exact difference (Lemma 21), a given L may be a rounded pair.
  const Vec exponent_error = batch.isolated ? exponent.error : hn::Zero(Tag());
  double error = hn::GetLane(weight_error(exponent.value.hi, exponent_error));
  if (!batch.isolated) {
    value = divide(value, {broadcast(row.denominator_hi), broadcast(row.denominator_lo)});
    error += row.denominator_error / row.denominator_hi * (1 + 0x1p-18);
  }
  return {first_lane(value), error};
}

/// Factors of all blocks, and the sink's probability and gradient.
HWY_NOINLINE void begin_gradient_row(GradientBatch& batch, int r) {
  const RowBatch& forward = *batch.forward;
  GradientRow& row = batch.row[r];
  double at = -std::numeric_limits<double>::infinity();
  Factor factor{{0, 0}, 0};
  for (std::int64_t block = 0; block < forward.blocks(); ++block) {
    const double reference = forward.reference.data()[block * forward.rows + r];
    if (reference != at) factor = factor_at(batch, r, at = reference);
    *batch.factor_of(block, 0, r) = factor.value.hi;
    *batch.factor_of(block, 1, r) = factor.value.lo;
    *batch.factor_of(block, 2, r) = factor.relative_error;
  }
  if (!row.truth->has_sink) return;
  const Factor sink = factor_at(batch, r, row.truth->sink);
  const Vec error = broadcast(sink.value.hi * (sink.relative_error + bounds::kProbability) +
                              bounds::kDroppedProbability);
  const Bounded p{{broadcast(sink.value.hi), broadcast(sink.value.lo)}, error};
  const Bounded shift{{broadcast(row.shift.hi), broadcast(row.shift.lo)},
                      broadcast(row.shift.radius)};
  const Bounded dsink = product(p, shift);
  row.gradients->p_sink = sink.value.hi;
  row.gradients->dsink = {hn::GetLane(dsink.value.hi), hn::GetLane(dsink.value.lo),
                          hn::GetLane(dsink.error)};
}

/// dQ of row r and its radius (Lemma 27).
template <bool kTight>
HWY_NOINLINE void finish_gradient_row(const GradientBatch& batch, int r) {
  const RowBatch& forward = *batch.forward;
  const GradientRow& row = batch.row[r];
  const Certified& scale = forward.head->scale;
  const auto tiles = static_cast<double>(forward.row[r].tiles);
  const std::int64_t stride = batch.head->stride;
  const auto sum = [&](ColumnSum which, std::int64_t column) {
    return load(batch.dq.data() + (which * forward.rows + r) * stride + column);
  };
  alignas(64) double hi[kVirtualLanes], lo[kVirtualLanes], radius[kVirtualLanes];
  for (std::int64_t column = 0; column < forward.head->head_dim; column += kLanes) {
    const Vec magnitude = sum(kSumMagnitude, column);
    const Bounded total{{sum(kSumHigh, column), sum(kSumLow, column)},
                        sum_error<kTight>(magnitude, sum(kSumError, column), tiles)};
    const Pair scaled = multiply(total.value, {broadcast(scale.hi), broadcast(scale.lo)});
    const Vec error =
        hn::Add(hn::Mul(hn::Add(hn::Mul(total.error, broadcast(std::abs(scale.hi))),
                                hn::Mul(hn::Abs(scaled.hi), broadcast(bounds::kScale))),
                        broadcast(bounds::kUpFew)),
                broadcast(bounds::kTileUnderflow));
    store(scaled.hi, hi);
    store(scaled.lo, lo);
    store(hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(Tag())), error), radius);
    for (int n = 0; n < kLanes && column + n < forward.head->head_dim; ++n) {
      const bool finite = std::isfinite(hi[n]) && std::isfinite(radius[n]);
      row.gradients->dq[static_cast<std::size_t>(column + n)] =
          finite ? Certified{hi[n], lo[n], radius[n]}
                 : Certified{0, 0, std::numeric_limits<double>::infinity()};
    }
  }
  row.gradients->dp_radius = row.dp_excess * bounds::kUpFew;
  row.gradients->ds_radius = row.ds_excess * bounds::kUpFew;
}

/// One tile: dP, P, dS of every row, then the sums.
template <int kRows, bool kTight>
void gradient_tile(GradientBatch& batch, const DotConstants& constants, std::int64_t tile) {
  const RowBatch& forward = *batch.forward;
  const std::int64_t place = forward.first_tile + tile;
  dp_tile<kRows, kTight>(batch, constants, tile);
  std::fill_n(batch.key_sums.data(), kKeySums * kTileKeys, 0.0);
  for (int r = 0; r < forward.rows; ++r) gradient_row(batch, constants, tile, r);
  TileProduct dq{forward.rows,
                 batch.word(kDsHigh, 0),
                 batch.word(kDsLow, 0),
                 batch.mass.data(),
                 batch.mass_error.data(),
                 forward.head->head_dim,
                 batch.head->stride,
                 batch.head->k.data() + place * kTileKeys * batch.head->stride,
                 {},
                 batch.dq.data()};
  for (int r = 0; r < forward.rows; ++r) {
    dq.largest[r] = largest_of_seen(
        forward.visible_tile(tile, r), batch.head->k_key_max.data() + place * kTileKeys,
        batch.head->k_max.data() + place * batch.head->stride, dq.values, batch.head->stride,
        batch.seen_max.data() + r * batch.head->stride);
  }
  add_product<kRows, kTight>(dq);
  if (batch.sums == nullptr) return;
  const double* sums = batch.key_sums.data();
  const double rounding = kTight ? bounds::kTileTight : bounds::rows_fast(forward.rows);
  const RowsProduct dv{forward.rows,
                       batch.word(kPHigh, 0),
                       batch.word(kPLow, 0),
                       sums + kPMass * kTileKeys,
                       sums + kPError * kTileKeys,
                       batch.dout_rows.data(),
                       batch.dout_max.data(),
                       rounding,
                       &batch.sums->dv};
  add_key_tile<kTight>(dv, place * kTileKeys, batch.sums->slot);
  const RowsProduct dk{forward.rows,
                       batch.word(kDsHigh, 0),
                       batch.word(kDsLow, 0),
                       sums + kDsMass * kTileKeys,
                       sums + kDsError * kTileKeys,
                       batch.q_rows.data(),
                       batch.q_max.data(),
                       rounding,
                       &batch.sums->dk};
  add_key_tile<kTight>(dk, place * kTileKeys, batch.sums->slot);
}

template <int kRows, bool kTight>
void compute_gradient_rows(GradientBatch& batch) {
  const RowBatch& forward = *batch.forward;
  const DotConstants constants =
      dot_constants(forward.head->value_dim, kTight, batch.head->exact_products);
  std::fill_n(batch.dq.data(), 4 * forward.rows * batch.head->stride, 0.0);
  bool some = false;
  for (int r = 0; r < forward.rows; ++r) {
    if (batch.row[r].gradients == nullptr) continue;
    begin_gradient_row(batch, r);
    some = true;
  }
  if (!some) return;
  for (std::int64_t tile = 0; tile < forward.tiles; ++tile) {
    const std::uint8_t* visible = forward.visible_tile(tile, 0);
    if (std::memchr(visible, 1, static_cast<std::size_t>(forward.rows) * kTileKeys) == nullptr) {
      continue;
    }
    gradient_tile<kRows, kTight>(batch, constants, tile);
  }
  for (int r = 0; r < forward.rows; ++r) {
    if (batch.row[r].gradients != nullptr) finish_gradient_row<kTight>(batch, r);
  }
}

void compute_gradients_target(GradientBatch& batch) {
  const bool tight = batch.forward->head->precision == Precision::tight;
  if (batch.forward->rows == 1) {
    return tight ? compute_gradient_rows<1, true>(batch) : compute_gradient_rows<1, false>(batch);
  }
  return tight ? compute_gradient_rows<2, true>(batch) : compute_gradient_rows<2, false>(batch);
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ringproof::oracle {

HWY_EXPORT(compute_gradients_target);

void compute_gradients(GradientBatch& batch) {
  HWY_DYNAMIC_DISPATCH(compute_gradients_target)(batch);
}

}  // namespace ringproof::oracle

#endif  // HWY_ONCE
