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

/// 2^x for x <= 1, relative error below 2^-23.2 (1.7 roundings); exactly 1 at 0; 0 where the result
/// would not be a normal number, and for minus infinity. 2^x = 2^n 2^f with |f| <= 1/2; the
/// polynomial is the one of degree 6 through 1 with the smallest relative error, 2^-28.9.
HWY_INLINE Vec exp2_of(Vec x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const Vec n = hn::Round(x), f = hn::Sub(x, n);
  Vec p = hn::Set(d, 0x1.41fbbcp-13f);
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.5f3e52p-10f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.3b2d4cp-7f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.c6aee8p-5f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.ebfbdcp-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.62e430p-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, n));
  const Vec result = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), result);
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
