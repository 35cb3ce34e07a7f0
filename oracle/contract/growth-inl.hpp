// Growth of weights for every vector target: g (e^x - 1) without products of 0 and infinity.
// Included once for every target.
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"

#if defined(RINGPROOF_GROWTH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_GROWTH_INL
#undef RINGPROOF_GROWTH_INL
#else
#define RINGPROOF_GROWTH_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
using Vector = hn::Vec<Doubles>;
constexpr Doubles kTag{};

/// e^x, for any x: what lies beyond the range of binary64 saturates.
HWY_INLINE Vector Exponential(Vector x) {
  const auto low = hn::Set(kTag, -745.0), high = hn::Set(kTag, 700.0);
  return hn::Exp(kTag, hn::Min(hn::Max(x, low), high));
}

/// g e^x - g for g = e^log_g, never as a product of 0 and infinity: for x >= 1 the upper bound
/// e^{log_g + x} takes its place. `growth` is e^x - 1 wherever x < 1.
HWY_INLINE Vector Grown(Vector log_g, Vector g, Vector x, Vector growth) {
  const auto small = hn::Lt(x, hn::Set(kTag, 1.0));
  const auto weight = hn::Mul(g, growth);
  if (HWY_LIKELY(hn::AllTrue(kTag, small))) return weight;
  return hn::IfThenElse(small, weight, Exponential(hn::Add(log_g, x)));
}

HWY_INLINE Vector Growth(Vector x) { return hn::Expm1(kTag, hn::Min(x, hn::Set(kTag, 1.0))); }

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
