// Register-blocked products, and 2^x (simd_kernels.hpp). Included once for every SIMD target.
#if defined(RINGPROOF_MPI_SIMD_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_MPI_SIMD_PRODUCT_INL
#undef RINGPROOF_MPI_SIMD_PRODUCT_INL
#else
#define RINGPROOF_MPI_SIMD_PRODUCT_INL
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "mpi/simd_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace mpi {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
constexpr Index kLanes = static_cast<Index>(HWY_LANES(float));

// Sixteen registers hold 6 x 2 sums, two vectors of b and one of a; thirty-two hold 8 x 3.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
constexpr int kPassRows = kManyRegisters ? 8 : 6;
constexpr int kPassVectors = kManyRegisters ? 3 : 2;
constexpr bool kFused = HWY_TARGET != HWY_SSSE3 && HWY_TARGET != HWY_SSE4 &&
                        HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

/// R rows by V vectors of c, in registers from the first term to the last.
template <int R, int V, Into kInto>
HWY_INLINE void pass(const Product& p, const float* alpha, Index row, Index column) {
  const Floats d;
  Vec sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d);
  }
  const float* a = p.a.data + row * p.a.row;
  const float* b = p.b.data + column;
  for (Index t = 0; t < p.depth; ++t, a += p.a.step, b += p.b.row) {
    Vec terms[V];
    for (int v = 0; v < V; ++v) terms[v] = hn::Load(d, b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec factor = hn::Set(d, a[r * p.a.row]);
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(factor, terms[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* place = p.c.data + (row + r) * p.c.row + column + v * kLanes;
      Vec result = sum[r][v];
      if constexpr (kInto == Into::add) result = hn::Add(hn::Load(d, place), result);
      if constexpr (kInto == Into::rescale) {
        result = hn::MulAdd(hn::Load(d, alpha + column + v * kLanes), hn::Load(d, place), result);
      }
      hn::Store(result, d, place);
    }
  }
}

/// All columns of R rows.
template <int R, Into kInto>
HWY_INLINE void pass_columns(const Product& p, const float* alpha, Index row) {
  Index column = 0;
  for (; column + kPassVectors * kLanes <= p.columns; column += kPassVectors * kLanes) {
    pass<R, kPassVectors, kInto>(p, alpha, row, column);
  }
  for (; column < p.columns; column += kLanes) pass<R, 1, kInto>(p, alpha, row, column);
}

template <Into kInto>
void multiply_into(const Product& p, const float* alpha) {
  Index row = 0;
  for (; row + kPassRows <= p.rows; row += kPassRows) {
    pass_columns<kPassRows, kInto>(p, alpha, row);
  }
  for (; row + 4 <= p.rows; row += 4) pass_columns<4, kInto>(p, alpha, row);
  for (; row + 2 <= p.rows; row += 2) pass_columns<2, kInto>(p, alpha, row);
  if (row < p.rows) pass_columns<1, kInto>(p, alpha, row);
}

/// 2^x of N vectors, for x <= 1: relative error below 2^-23.2 (1.7 roundings); exactly 1 at 0; 0
/// where the result would not be a normal number, and for minus infinity. 2^x = 2^n 2^f with
/// |f| <= 1/2; the polynomial is the one of degree 6 through 1 with the smallest relative error,
/// 2^-28.9. Several vectors at once, step by step: one alone would wait for its own results.
template <int N>
HWY_INLINE void exp2_of(Vec (&x)[N]) {
  constexpr float kCoefficients[] = {0x1.41fbbcp-13f,
                                     0x1.5f3e52p-10f,
                                     0x1.3b2d4cp-7f,
                                     0x1.c6aee8p-5f,
                                     0x1.ebfbdcp-3f,
                                     0x1.62e430p-1f,
                                     1.0f};
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  // Adding 3 * 2^22 rounds to the nearest integer, which then stands in the sum's last bits.
  const Vec large = hn::Set(d, 0x1.8p23f), least = hn::Set(d, -126.0f);
  Vec shifted[N], f[N], p[N];
  for (int n = 0; n < N; ++n) shifted[n] = hn::Add(x[n], large);
  for (int n = 0; n < N; ++n) f[n] = hn::Sub(x[n], hn::Sub(shifted[n], large));
  for (int n = 0; n < N; ++n) p[n] = hn::Set(d, kCoefficients[0]);
  for (int step = 1; step < 7; ++step) {
    const Vec coefficient = hn::Set(d, kCoefficients[step]);
    for (int n = 0; n < N; ++n) p[n] = hn::MulAdd(p[n], f[n], coefficient);
  }
  for (int n = 0; n < N; ++n) {
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted[n]));
    const Vec result = hn::BitCast(d, hn::Add(hn::BitCast(di, p[n]), exponent));
    x[n] = hn::IfThenZeroElse(hn::Lt(x[n], least), result);
  }
}

/// factor * x - shift, fused where the machine can; elsewhere the difference is taken first: a
/// rounded product near a rounded shift would lose what the fused form keeps.
HWY_INLINE Vec exponent_of(Vec x, Vec m, Vec factor, Vec shift) {
  if constexpr (kFused) return hn::MulSub(x, factor, shift);
  return hn::Mul(hn::Sub(x, m), factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace mpi
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif
