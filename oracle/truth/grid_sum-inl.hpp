// Error-free products accumulated against a large constant: the sums behind q.k and behind p.V.
// Lemmas 5 to 7 and 15 of docs/double_double.md. Included once for every target.
// Sums run over the terms in order, one lane a sum: the number of lanes cannot change a bit.
#include "oracle/truth/double_double-inl.hpp"

#if defined(RINGPROOF_GRID_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_GRID_SUM_INL
#undef RINGPROOF_GRID_SUM_INL
#else
#define RINGPROOF_GRID_SUM_INL
#endif

#include "oracle/truth/error_bounds.hpp"
#include "oracle/truth/row_batch.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// C of Lemma 5: a power of two with C/2 > magnitude, not below the smallest grid.
HWY_INLINE Vec grid_constant(Vec magnitude) {
  return hn::Max(hn::Mul(broadcast(4), power_of_two_below(magnitude)),
                 broadcast(bounds::kSmallestGrid));
}

/// How many vectors one pass of a kernel keeps for each of its rows: with two rows two, with one
/// row four, so that enough independent additions run at once and their sums stay in registers.
template <int kRows, bool kTight>
constexpr int vectors_at_once(int available) {
  const int wanted = kRows == 1 ? 4 : (kTight ? 1 : 2);
  return available < wanted ? available : wanted;
}

/// Running sums of error-free products: `high` on the grid of C, the residuals in `low`, and in
/// `tight` what the sum of the residuals itself loses in `lowest`.
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
    // p_low v joins the residual first: so only one addition of a step waits for the one before.
    add_low(fused_add(p_low, v, fused_subtract(p_high, v, part)));
  }
  /// Adds the sum to a running pair (Lemma 16).
  HWY_INLINE Pair add_to(Pair total, Vec grid, double low_grid) const {
    const Vec high_part = hn::Sub(high, hn::Mul(grid, broadcast(1.5)));
    Vec low_part = low;
    if (kTight) {
      low_part = hn::Add(hn::Sub(low, hn::Mul(grid, broadcast(1.5 * low_grid))), lowest);
    }
    const Pair sum = two_sum(total.hi, high_part);
    return two_sum(sum.hi, hn::Add(sum.lo, hn::Add(total.lo, low_part)));
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

/// Plain sums over t of q_t k_t for 16 keys; with kMagnitudes of q_t |k_t|, made larger than their
/// rounding (Lemma 4).
template <int kRows, bool kMagnitudes>
HWY_INLINE void plain_sums(const double* HWY_RESTRICT q, int q_stride,  // [D, q_stride]
                           const double* HWY_RESTRICT k,                // [D, 16]
                           std::int64_t dim,
                           double* HWY_RESTRICT out) {  // [kRows, 16]
  constexpr int kWanted = kRows > 2 ? 2 : 4;            // so that the sums stay in registers
  constexpr int kStep = kSubtileKeys / kLanes < kWanted ? kSubtileKeys / kLanes : kWanted;
  for (int column = 0; column < kSubtileKeys; column += kStep * kLanes) {
    Vec sum[kRows][kStep];
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) sum[r][n] = hn::Zero(Tag());
    }
    for (std::int64_t t = 0; t < dim; ++t) {
      Vec query[kRows];
      for (int r = 0; r < kRows; ++r) query[r] = broadcast(q[t * q_stride + r]);
      for (int n = 0; n < kStep; ++n) {
        Vec key = load(k + t * kSubtileKeys + column + n * kLanes);
        if (kMagnitudes) key = hn::Abs(key);
        for (int r = 0; r < kRows; ++r) sum[r][n] = fused_add(query[r], key, sum[r][n]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) {
        if (kMagnitudes) sum[r][n] = hn::Mul(sum[r][n], broadcast(bounds::kUp));
        store(sum[r][n], out + r * kSubtileKeys + column + n * kLanes);
      }
    }
  }
}

/// Upper bounds of sum_t |q_t k_t| for 16 keys, from the magnitudes of q.
template <int kRows>
HWY_INLINE void dot_magnitudes(const double* q_magnitude, int q_stride, const double* k,
                               std::int64_t dim, double* out) {
  plain_sums<kRows, true>(q_magnitude, q_stride, k, dim, out);
}

/// q.k of 16 keys for kRows rows where plain sums are exact (Lemma 6b).
template <int kRows>
HWY_INLINE void exact_dot_products(const double* q, int q_stride, const double* k, std::int64_t dim,
                                   double* out) {
  plain_sums<kRows, false>(q, q_stride, k, dim, out);
}

/// q.k of 16 keys for kRows rows, as double-doubles (Lemmas 5 to 7).
template <int kRows, bool kTight>
HWY_INLINE void dot_products(const double* HWY_RESTRICT q, int q_stride,  // [D, q_stride]
                             const double* HWY_RESTRICT k,                // [D, 16]
                             std::int64_t dim, double low_grid,
                             const double* HWY_RESTRICT magnitudes,  // [kRows, 16]
                             double* HWY_RESTRICT high,              // [kRows, 16]
                             double* HWY_RESTRICT low) {             // [kRows, 16]
  constexpr int kStep = vectors_at_once<kRows, kTight>(kSubtileKeys / kLanes);
  for (int column = 0; column < kSubtileKeys; column += kStep * kLanes) {
    Accumulator<kTight> sum[kRows][kStep];
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) {
        const Vec magnitude = load(magnitudes + r * kSubtileKeys + column + n * kLanes);
        sum[r][n].start(grid_constant(magnitude), low_grid);
      }
    }
    for (std::int64_t t = 0; t < dim; ++t) {
      Vec query[kRows];
      for (int r = 0; r < kRows; ++r) query[r] = broadcast(q[t * q_stride + r]);
      for (int n = 0; n < kStep; ++n) {
        const Vec key = load(k + t * kSubtileKeys + column + n * kLanes);
        for (int r = 0; r < kRows; ++r) sum[r][n].add_product(query[r], key);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kStep; ++n) {
        const int at = r * kSubtileKeys + column + n * kLanes;
        const Pair dot = sum[r][n].result(grid_constant(load(magnitudes + at)), low_grid);
        store(dot.hi, high + at);
        store(dot.lo, low + at);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
