// dK and dV: for every key of a tile the sum over the rows of a batch of weight times row, added to
// the key's running sums. Lemma 26 of docs/backward_truth.md. Included once for every target.
#include "oracle/truth/gradient_tile-inl.hpp"

#if defined(RINGPROOF_KEY_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_KEY_SUM_INL
#undef RINGPROOF_KEY_SUM_INL
#else
#define RINGPROOF_KEY_SUM_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// What is summed over the rows of a batch: for every key of the tile, pairs of weights times rows.
struct RowsProduct {
  int rows;
  const double* high;        // [rows, 64] weights
  const double* low;         // [rows, 64]
  const double* mass;        // [64] over the rows: sum of |weight|
  const double* mass_error;  // [64] of their errors; 0: no row sees the key
  const double* values;      // [rows, stride]
  const double* largest;     // [stride] over the rows
  double rounding;           // of C, Lemma 26
  KeySums* sums;
};

/// A key of the tile, and where its sums are.
struct KeyPlace {
  int key;
  std::int64_t slot;
};

template <int kKeys, int kStep, bool kTight>
HWY_INLINE void add_key_columns(const RowsProduct& product, const KeyPlace* places,
                                std::int64_t column) {
  constexpr double kLowGrid = 4 * kTileKeys * bounds::kUnit;
  const std::int64_t stride = product.sums->stride;
  const double* HWY_RESTRICT values = product.values + column;
  Accumulator<kTight> sum[kKeys][kStep];
  alignas(64) double grids[kKeys * kStep * kVirtualLanes];
  for (int k = 0; k < kKeys; ++k) {
    const Vec mass = broadcast(product.mass[places[k].key] * bounds::kUpFew);
    for (int n = 0; n < kStep; ++n) {
      const Vec largest = load(product.largest + column + n * kLanes);
      const Vec grid = grid_constant(fused_add(hn::Mul(mass, largest), broadcast(bounds::kUp),
                                               broadcast(bounds::kSumUnderflow)));
      store(grid, grids + (k * kStep + n) * kVirtualLanes);
      sum[k][n].start(grid, kLowGrid);
    }
  }
  for (int r = 0; r < product.rows; ++r) {
    Vec high[kKeys], low[kKeys];
    for (int k = 0; k < kKeys; ++k) {
      high[k] = broadcast(product.high[r * kTileKeys + places[k].key]);
      low[k] = broadcast(product.low[r * kTileKeys + places[k].key]);
    }
    for (int n = 0; n < kStep; ++n) {
      const Vec value = load(values + r * stride + n * kLanes);
      for (int k = 0; k < kKeys; ++k) sum[k][n].add_weighted(high[k], low[k], value);
    }
  }
  for (int k = 0; k < kKeys; ++k) {
    const Vec mass_error = broadcast(product.mass_error[places[k].key]);
    const std::int64_t at = places[k].slot * stride + column;
    for (int n = 0; n < kStep; ++n) {
      const Vec grid = load(grids + (k * kStep + n) * kVirtualLanes);
      const Vec largest = load(product.largest + column + n * kLanes);
      double* high = product.sums->high.data() + at + n * kLanes;
      double* low = product.sums->low.data() + at + n * kLanes;
      double* error = product.sums->error.data() + at + n * kLanes;
      const Vec before = load(high);
      const Pair total = sum[k][n].add_to({before, load(low)}, grid, kLowGrid);
      const Vec rounding =
          fused_add(hn::Add(hn::Abs(before), hn::Abs(total.hi)), broadcast(bounds::kRunningSum),
                    hn::Mul(grid, broadcast(product.rounding)));
      const Vec added = fused_add(mass_error, largest, rounding);
      // A column of zeros adds nothing, exactly.
      const Mask none = hn::Eq(largest, hn::Zero(Tag()));
      store(total.hi, high);
      store(total.lo, low);
      store(hn::Add(load(error), hn::IfThenZeroElse(none, added)), error);
    }
  }
}

/// All columns of kKeys keys.
template <int kKeys, bool kTight>
HWY_NOINLINE void add_keys(const RowsProduct& product, const KeyPlace* places) {
  constexpr int kStep = vectors_at_once<kKeys, kTight>(4);
  std::int64_t column = 0;
  for (; column + (kStep - 1) * kLanes < product.sums->columns; column += kStep * kLanes) {
    add_key_columns<kKeys, kStep, kTight>(product, places, column);
  }
  for (; column < product.sums->columns; column += kLanes) {
    add_key_columns<kKeys, 1, kTight>(product, places, column);
  }
}

/// The sums of the keys of one tile that some row sees and the caller wants; two keys share each
/// visit to the rows.
template <bool kTight>
HWY_INLINE void add_key_tile(const RowsProduct& product, std::int64_t first_key,
                             const std::vector<std::int32_t>& slots) {
  KeyPlace places[kTileKeys];
  int count = 0;
  for (int key = 0; key < kTileKeys; ++key) {
    if (product.mass_error[key] == 0) continue;
    const std::int64_t slot = slots[static_cast<std::size_t>(first_key + key)];
    if (slot >= 0) places[count++] = {key, slot};
  }
  int n = 0;
  for (; n + 1 < count; n += 2) add_keys<2, kTight>(product, places + n);
  if (n < count) add_keys<1, kTight>(product, places + n);
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
