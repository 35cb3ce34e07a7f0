// Weighted sums of V over one tile of keys: where V has few bits, as 16-bit numbers have, with
// weights cut into slices whose products with V add up exactly (Lemma 15b of
// docs/double_double.md); elsewhere by error-free products (Lemma 15, weight_tile-inl.hpp). It is
// included once for every target.
#include "oracle/truth/weight_tile-inl.hpp"

#if defined(RINGPROOF_VALUE_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_VALUE_TILE_INL
#undef RINGPROOF_VALUE_TILE_INL
#else
#define RINGPROOF_VALUE_TILE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Cuts the weights of a tile at 2^-bits and at 2^-2bits; the last slice takes the low words along,
/// and is the only one that is rounded.
HWY_INLINE void slice_weights(const double* HWY_RESTRICT high,  // [64]
                              const double* HWY_RESTRICT low,   // [64]
                              int bits,
                              double* HWY_RESTRICT slices) {  // [3, 64]
  // Adding 1.5 2^52 units rounds to a multiple of the unit.
  const Vec coarse = broadcast(std::ldexp(0x1.8p52, -bits));
  const Vec fine = broadcast(std::ldexp(0x1.8p52, -2 * bits));
  for (int at = 0; at < kTileKeys; at += kLanes) {
    const Vec weight = load(high + at);
    const Vec first = hn::Sub(hn::Add(weight, coarse), coarse);
    const Vec rest = hn::Sub(weight, first);
    const Vec second = hn::Sub(hn::Add(rest, fine), fine);
    store(first, slices + at);
    store(second, slices + kTileKeys + at);
    store(hn::Add(hn::Sub(rest, second), load(low + at)), slices + 2 * kTileKeys + at);
  }
}

/// Lemma 15b: what a row's sum over a tile is charged, for each unit of the column's largest |v|.
inline double slice_rounding(int bits) {
  return bounds::kLastSlice * (std::ldexp(1.0, -2 * bits - 1) + 4 * bounds::kUnit);
}

/// The sums of the tile for rows [row, row + kRows) and kStep vectors of columns.
template <int kRows, int kStep>
HWY_INLINE void add_sliced_columns(const TileProduct& tile, const double* slices, double rounding,
                                   int row, std::int64_t column) {
  const double* HWY_RESTRICT v = tile.values + column;
  const double* HWY_RESTRICT slice = slices + row * kSlices * kTileKeys;
  Vec sum[kRows][kSlices][kStep];
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kStep; ++n) {
      tile.charge(row + r, column + n * kLanes, broadcast(rounding));
      for (int s = 0; s < kSlices; ++s) sum[r][s][n] = hn::Zero(Tag());
    }
  }
  for (int j = 0; j < kTileKeys; ++j) {
    Vec value[kStep];
    for (int n = 0; n < kStep; ++n) value[n] = load(v + j * tile.stride + n * kLanes);
    for (int r = 0; r < kRows; ++r) {
      for (int s = 0; s < kSlices; ++s) {
        const Vec weight = broadcast(slice[(r * kSlices + s) * kTileKeys + j]);
        for (int n = 0; n < kStep; ++n) sum[r][s][n] = fused_add(weight, value[n], sum[r][s][n]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kStep; ++n) {
      double* high = tile.sum(kSumHigh, row + r) + column + n * kLanes;
      double* low = tile.sum(kSumLow, row + r) + column + n * kLanes;
      // Lemma 16.
      const Pair first = two_sum(load(high), sum[r][0][n]);
      const Pair second = two_sum(first.hi, sum[r][1][n]);
      const Vec rest = hn::Add(hn::Add(first.lo, second.lo), hn::Add(load(low), sum[r][2][n]));
      const Pair total = two_sum(second.hi, rest);
      store(total.hi, high);
      store(total.lo, low);
    }
  }
}

/// add_sliced_columns for all rows that give the tile weight.
template <int kRows, int kStep>
HWY_NOINLINE void add_sliced_rows(const TileProduct& tile, const double* slices, double rounding,
                                  std::int64_t column) {
  for (int row = 0; row < tile.rows; row += kRows) {
    bool weighs = false;
    for (int r = row; r < row + kRows; ++r) weighs = weighs || tile.mass_error[r] != 0;
    if (weighs) add_sliced_columns<kRows, kStep>(tile, slices, rounding, row, column);
  }
}

/// Sums of one tile for all columns, as add_product.
template <int kRows>
HWY_INLINE void add_slices(const TileProduct& tile, const double* slices, double rounding) {
  constexpr int kStep = kRows == 1 ? 4 : 2;
  std::int64_t column = 0;
  for (; column + (kStep - 1) * kLanes < tile.columns; column += kStep * kLanes) {
    add_sliced_rows<kRows, kStep>(tile, slices, rounding, column);
  }
  for (; column < tile.columns; column += kLanes) {
    add_sliced_rows<kRows, 1>(tile, slices, rounding, column);
  }
}

/// The largest magnitude of every column over the keys of a tile that a row sees: the tile's,
/// unless a key that the row does not see is much larger than those that it sees.
HWY_INLINE const double* largest_of_seen(const std::uint8_t* visible,         // [64]
                                         const double* key_max,               // [64]
                                         const double* tile_max,              // [stride]
                                         const double* values,                // [64, stride]
                                         std::int64_t stride, double* own) {  // [stride]
  if (std::memchr(visible, 0, kTileKeys) == nullptr) return tile_max;
  if (std::memchr(visible, 1, kTileKeys) == nullptr) return tile_max;
  double seen = 0, hidden = 0;
  for (int j = 0; j < kTileKeys; ++j) {
    double& largest = visible[j] != 0 ? seen : hidden;
    largest = std::max(largest, key_max[j]);
  }
  if (hidden <= 2 * seen) return tile_max;
  std::fill_n(own, stride, 0.0);
  for (int j = 0; j < kTileKeys; ++j) {
    if (visible[j] == 0) continue;
    for (std::int64_t column = 0; column < stride; column += kLanes) {
      const Vec value = hn::Abs(load(values + j * stride + column));
      store(hn::Max(load(own + column), value), own + column);
    }
  }
  return own;
}

/// Weighted sums of V over one tile, the column of ones included. Which way they are taken depends
/// on the tile alone: the company of a row must not show.
template <int kRows, bool kTight>
HWY_INLINE void add_tile(const RowBatch& batch, std::int64_t tile) {
  const PackedHead& head = *batch.head;
  const std::int64_t place = batch.first_tile + tile;
  TileProduct product{batch.rows,
                      batch.word(tile, kWeightHigh, 0),
                      batch.word(tile, kWeightLow, 0),
                      batch.mass.data() + batch.mass_index(tile, 0),
                      batch.mass_error.data() + batch.mass_index(tile, 0),
                      head.value_dim + 1,
                      head.stride,
                      head.v.data() + place * kTileKeys * head.stride,
                      {},
                      batch.sums.data()};
  for (int r = 0; r < batch.rows; ++r) {
    product.largest[r] =
        largest_of_seen(batch.visible_tile(tile, r), head.v_key_max.data() + place * kTileKeys,
                        head.v_max.data() + place * head.stride, product.values, head.stride,
                        batch.seen_max.data() + r * head.stride);
  }
  const int bits = kTight ? 0 : head.slice_bits[static_cast<std::size_t>(place)];
  if (bits == 0) return add_product<kRows, kTight>(product);
  for (int r = 0; r < batch.rows; ++r) {
    slice_weights(product.high + r * kTileKeys, product.low + r * kTileKeys, bits,
                  batch.slices.data() + r * kSlices * kTileKeys);
  }
  add_slices<kRows>(product, batch.slices.data(), slice_rounding(bits));
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
