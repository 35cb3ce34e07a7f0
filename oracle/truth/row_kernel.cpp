// The double-double rows: one pass over the scores, one over the weights, one over V, then
// quotient, logarithm and radius (docs/double_double.md). Compiled once for every SIMD target of
// the platform and dispatched at run time; every target returns the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/truth/row_kernel.cpp"
// Also the targets that a better baseline would replace: tests compare all of them.
#define HWY_COMPILE_ALL_ATTAINABLE
// Vectors of unknown size cannot be members or array elements; those machines use NEON.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include "hwy/foreach_target.h"
//
#include "oracle/truth/row_finish-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Largest score of row r in block `block`.
double block_maximum(const RowBatch& batch, std::int64_t first_tile, std::int64_t last_tile,
                     int r) {
  Vec largest = broadcast(-std::numeric_limits<double>::infinity());
  for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
    const double* score = batch.word(tile, kScoreHigh, r);
    for (int at = 0; at < kTileKeys; at += kLanes) largest = hn::Max(largest, load(score + at));
  }
  return hn::GetLane(hn::MaxOfLanes(Tag(), largest));
}

/// Scores, weights and sums of one block of keys: the online softmax, a block at a time.
template <int kRows, bool kTight>
void compute_block(RowBatch& batch, const ScoreConstants& constants, std::int64_t block) {
  const std::int64_t first = block * kBlockTiles;
  const std::int64_t last = std::min(batch.tiles, first + kBlockTiles);
  for (std::int64_t tile = first; tile < last; ++tile) {
    score_tile<kRows, kTight>(batch, constants, tile);
  }
  for (int r = 0; r < batch.rows; ++r) {
    BatchRow& row = batch.row[r];
    const double maximum = block_maximum(batch, first, last, r);
    if (maximum > row.reference) {
      if (std::isfinite(row.reference)) change_reference(batch, r, row.reference, maximum);
      row.reference = maximum;
    }
    batch.reference.data()[block * batch.rows + r] = row.reference;
    for (std::int64_t tile = first; tile < last; ++tile) weigh_tile(batch, tile, r);
  }
  for (std::int64_t tile = first; tile < last; ++tile) add_tile<kRows, kTight>(batch, tile);
}

template <int kRows, bool kTight>
void compute_rows(RowBatch& batch) {
  const ScoreConstants constants = score_constants(batch);
  std::fill_n(batch.sums.data(), 4 * batch.rows * batch.head->stride, 0.0);
  for (int r = 0; r < batch.rows; ++r) {
    BatchRow& row = batch.row[r];
    row.reference = row.has_sink ? row.sink : -std::numeric_limits<double>::infinity();
  }
  for (std::int64_t block = 0; block < batch.blocks(); ++block) {
    compute_block<kRows, kTight>(batch, constants, block);
  }
  for (int r = 0; r < batch.rows; ++r) {
    if (batch.row[r].truth != nullptr) finish_row<kTight>(batch, r);
  }
}

void compute_batch_target(RowBatch& batch) {
  const bool tight = batch.head->precision == Precision::tight;
  if (batch.rows == 1) return tight ? compute_rows<1, true>(batch) : compute_rows<1, false>(batch);
  return tight ? compute_rows<2, true>(batch) : compute_rows<2, false>(batch);
}

template <class F>
void for_each_eight(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                    double* out_lo, F f) {
  for (std::int64_t first = 0; first < count; first += kVirtualLanes) {
    Pair x[kVirtualVectors];
    for (int n = 0; n < kVirtualVectors; ++n) {
      x[n] = {hn::LoadU(Tag(), hi + first + n * kLanes), hn::LoadU(Tag(), lo + first + n * kLanes)};
    }
    f(x);
    for (int n = 0; n < kVirtualVectors; ++n) {
      hn::StoreU(x[n].hi, Tag(), out_hi + first + n * kLanes);
      hn::StoreU(x[n].lo, Tag(), out_lo + first + n * kLanes);
    }
  }
}
void exp_target(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                double* out_lo) {
  for_each_eight(hi, lo, count, out_hi, out_lo,
                 [](Pair(&x)[kVirtualVectors]) { exp_dd(exp_table(), x); });
}
void tanh_target(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                 double* out_lo) {
  for_each_eight(hi, lo, count, out_hi, out_lo, [](Pair(&x)[kVirtualVectors]) {
    for (Pair& each : x) each = tanh_of_magnitude(exp_table(), each);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <stdexcept>

namespace ringproof::oracle {

HWY_EXPORT(compute_batch_target);
HWY_EXPORT(exp_target);
HWY_EXPORT(tanh_target);

void compute_batch(RowBatch& batch) { HWY_DYNAMIC_DISPATCH(compute_batch_target)(batch); }
void exp_dd_array(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                  double* out_lo) {
  HWY_DYNAMIC_DISPATCH(exp_target)(hi, lo, count, out_hi, out_lo);
}
void tanh_dd_array(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                   double* out_lo) {
  HWY_DYNAMIC_DISPATCH(tanh_target)(hi, lo, count, out_hi, out_lo);
}

std::string simd_target() { return hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()); }

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

void force_simd_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(target);
  }
  throw std::runtime_error("no SIMD target " + name + " on this machine");
}

}  // namespace ringproof::oracle

#endif  // HWY_ONCE
