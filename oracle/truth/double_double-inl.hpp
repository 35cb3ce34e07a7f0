// Double-double arithmetic on Highway vectors: error-free sums and products (Lemmas 1-3 of
// docs/double_double.md). Included once for every target (no ordinary include guard).
// Eight virtual lanes: a vector has at most eight, and sums across lanes are taken as if it had
// eight, so every target returns the same bits.
#include "hwy/highway.h"

#if defined(RINGPROOF_DOUBLE_DOUBLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_DOUBLE_DOUBLE_INL
#undef RINGPROOF_DOUBLE_DOUBLE_INL
#else
#define RINGPROOF_DOUBLE_DOUBLE_INL
#endif

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kVirtualLanes = 8;
using Tag = hn::CappedTag<double, kVirtualLanes>;
using Vec = hn::Vec<Tag>;
using Mask = hn::Mask<Tag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
/// Vectors that make up the eight virtual lanes.
inline constexpr int kVirtualVectors = kVirtualLanes / kLanes;

HWY_INLINE Vec broadcast(double value) { return hn::Set(Tag(), value); }
HWY_INLINE Vec load(const double* aligned) { return hn::Load(Tag(), aligned); }
HWY_INLINE void store(Vec v, double* aligned) { hn::Store(v, Tag(), aligned); }

#if !HWY_NATIVE_FMA
/// std::fma is correctly rounded on every platform; without the instruction it is only slow.
template <class F>
HWY_INLINE Vec lane_by_lane(Vec a, Vec b, Vec c, F f) {
  alignas(64) double x[kVirtualLanes], y[kVirtualLanes], z[kVirtualLanes];
  store(a, x);
  store(b, y);
  store(c, z);
  for (int n = 0; n < kLanes; ++n) x[n] = f(x[n], y[n], z[n]);
  return load(x);
}
#endif

/// a b + c, a b - c and c - a b with one rounding.
HWY_INLINE Vec fused_add(Vec a, Vec b, Vec c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  return lane_by_lane(a, b, c, [](double x, double y, double z) { return std::fma(x, y, z); });
#endif
}
HWY_INLINE Vec fused_subtract(Vec a, Vec b, Vec c) {
#if HWY_NATIVE_FMA
  return hn::MulSub(a, b, c);
#else
  return lane_by_lane(a, b, c, [](double x, double y, double z) { return std::fma(x, y, -z); });
#endif
}
HWY_INLINE Vec fused_from(Vec c, Vec a, Vec b) {
#if HWY_NATIVE_FMA
  return hn::NegMulAdd(a, b, c);
#else
  return lane_by_lane(a, b, c, [](double x, double y, double z) { return std::fma(-x, y, z); });
#endif
}

/// The unevaluated sum hi + lo.
struct Pair {
  Vec hi, lo;
};

/// Lemma 1: hi = RN(a + b), hi + lo = a + b exactly.
HWY_INLINE Pair two_sum(Vec a, Vec b) {
  const Vec sum = hn::Add(a, b);
  const Vec b_part = hn::Sub(sum, a);
  const Vec a_part = hn::Sub(sum, b_part);
  return {sum, hn::Add(hn::Sub(a, a_part), hn::Sub(b, b_part))};
}
/// Lemma 2: the same in half the steps where |a| >= |b| or a = 0.
HWY_INLINE Pair fast_two_sum(Vec a, Vec b) {
  const Vec sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}
/// Lemma 3: hi = RN(a b), hi + lo = a b exactly, barring underflow.
HWY_INLINE Pair two_product(Vec a, Vec b) {
  const Vec product = hn::Mul(a, b);
  return {product, fused_subtract(a, b, product)};
}

/// Lemma 8: x (c_hi + c_lo); at most 7 units of the product.
HWY_INLINE Pair multiply(Pair x, Pair c) {
  const Pair product = two_product(x.hi, c.hi);
  const Vec low = fused_add(x.hi, c.lo, fused_add(x.lo, c.hi, product.lo));
  return fast_two_sum(product.hi, low);
}
/// Lemma 10: x + y; at most 4 units of |x| + |y|.
HWY_INLINE Pair add(Pair x, Pair y) {
  const Pair sum = two_sum(x.hi, y.hi);
  return two_sum(sum.hi, hn::Add(sum.lo, hn::Add(x.lo, y.lo)));
}
/// Lemma 17: x / y; at most 12 units of the quotient.
HWY_INLINE Pair divide(Pair x, Pair y) {
  const Vec first = hn::Div(x.hi, y.hi);
  const Vec remainder = hn::Add(fused_from(x.hi, first, y.hi), fused_from(x.lo, first, y.lo));
  return fast_two_sum(first, hn::Div(remainder, y.hi));
}

/// 2^e for a number in [2^e, 2^(e+1)); 0 for subnormal numbers. Precondition: value >= 0.
HWY_INLINE Vec power_of_two_below(Vec value) {
  const hn::RebindToUnsigned<Tag> bits;
  const auto exponent = hn::Set(bits, 0x7ff0000000000000ULL);
  return hn::BitCast(Tag(), hn::And(hn::BitCast(bits, value), exponent));
}

/// Sum of `kVirtualVectors` vectors across their eight virtual lanes, in the order of the lanes.
HWY_INLINE double sum_of_lanes(const Vec* vectors) {
  alignas(64) double lane[kVirtualLanes];
  for (int n = 0; n < kVirtualVectors; ++n) store(vectors[n], lane + n * kLanes);
  double sum = lane[0];
  for (int n = 1; n < kVirtualLanes; ++n) sum += lane[n];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
