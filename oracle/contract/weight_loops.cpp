// Weights and sums over the keys of one row for every vector target (weight_loops.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/weight_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"
#include "oracle/contract/row_keys.hpp"
#include "oracle/contract/weight_loops.hpp"

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

/// p e^b (e^x - 1) with p = e^log_p, never as a product of 0 and infinity: for x >= 1 the upper bound
/// e^{log_p + b + x} takes its place. `grown` is e^{log_p + b}.
HWY_INLINE Vector Weighted(Vector log_p_b, Vector grown, Vector x) {
  const auto one = hn::Set(kTag, 1.0);
  const auto small = hn::Lt(x, one);
  const auto weight = hn::Mul(grown, hn::Expm1(kTag, hn::Min(x, one)));
  if (HWY_LIKELY(hn::AllTrue(kTag, small))) return weight;
  return hn::IfThenElse(small, weight, Exponential(hn::Add(log_p_b, x)));
}

double Sum(Vector v) { return hn::GetLane(hn::SumOfLanes(kTag, v)); }

LseSums LseSumsOf(const KeyBudgetView& keys) {
  const auto one = hn::Set(kTag, 1.0);
  auto above = hn::Zero(kTag), below = hn::Zero(kTag), largest = hn::Zero(kTag);
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto budget =
        hn::Add(hn::LoadU(kTag, keys.common_lse + j), hn::LoadU(kTag, keys.denominator + j));
    const auto log_p = hn::LoadU(kTag, keys.log_p + j), p = hn::LoadU(kTag, keys.p + j);
    above = hn::Add(above, Weighted(log_p, p, budget));
    // 1 - e^{-x} = t / (1 + t) with t = e^x - 1.
    const auto t = hn::Expm1(kTag, hn::Min(budget, hn::Set(kTag, 700.0)));
    below = hn::Add(below, hn::Mul(p, hn::Div(t, hn::Add(one, t))));
    largest = hn::Max(largest, budget);
  }
  return {Sum(above), Sum(below), hn::GetLane(hn::MaxOfLanes(kTag, largest))};
}

void KeyWeightsOf(const KeyBudgetView& keys, KeyWeights& out) {
  auto common_sum = hn::Zero(kTag), numerator_sum = hn::Zero(kTag);
  auto denominator_sum = hn::Zero(kTag), shrunk_sum = hn::Zero(kTag);
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto log_p = hn::LoadU(kTag, keys.log_p + j), p = hn::LoadU(kTag, keys.p + j);
    const auto C = hn::LoadU(kTag, keys.common + j), cast = hn::LoadU(kTag, keys.cast + j);
    const auto A = hn::LoadU(kTag, keys.numerator + j);
    const auto B = hn::LoadU(kTag, keys.denominator + j);
    const auto grown_log = hn::Add(log_p, C), cast_log = hn::Add(grown_log, cast);
    const auto grown = Exponential(grown_log);
    const auto common = Weighted(log_p, p, C);
    const auto of_cast = Weighted(grown_log, grown, cast);
    // Beyond x = 1 Weighted() returns more than grown (e^cast - 1); the sum stays an upper bound.
    const auto beyond = Weighted(cast_log, hn::Add(grown, of_cast), A);
    const auto numerator = hn::Add(of_cast, beyond);
    hn::StoreU(common, kTag, out.common.data() + j);
    hn::StoreU(of_cast, kTag, out.cast.data() + j);
    hn::StoreU(beyond, kTag, out.beyond_cast.data() + j);
    hn::StoreU(numerator, kTag, out.numerator.data() + j);
    common_sum = hn::Add(common_sum, common);
    numerator_sum = hn::Add(numerator_sum, numerator);
    denominator_sum = hn::Add(denominator_sum, Weighted(grown_log, grown, B));
    shrunk_sum = hn::Add(shrunk_sum, Exponential(hn::Sub(hn::Sub(log_p, C), B)));
  }
  out.common_sum = Sum(common_sum);
  out.numerator_sum = Sum(numerator_sum);
  out.denominator_sum = Sum(denominator_sum);
  out.shrunk_sum = Sum(shrunk_sum);
}

void NumeratorWeights(const KeyBudgetView& keys, double extra, double* weights) {
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto grown_log =
        hn::Add(hn::LoadU(kTag, keys.log_p + j), hn::LoadU(kTag, keys.common + j));
    const auto budget = hn::Add(hn::LoadU(kTag, keys.cast + j), hn::Set(kTag, extra));
    hn::StoreU(Weighted(grown_log, Exponential(grown_log), budget), kTag, weights + j);
  }
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(LseSumsOf);
HWY_EXPORT(KeyWeightsOf);
HWY_EXPORT(NumeratorWeights);

LseSums lse_sums(const KeyBudgetView& keys) { return HWY_DYNAMIC_DISPATCH(LseSumsOf)(keys); }

void key_weights(const KeyBudgetView& keys, KeyWeights& out) {
  for (auto* array : {&out.common, &out.numerator, &out.cast, &out.beyond_cast}) {
    fit(*array, keys.padded);
  }
  HWY_DYNAMIC_DISPATCH(KeyWeightsOf)(keys, out);
}

void numerator_weights(const KeyBudgetView& keys, double extra, std::vector<double>& weights) {
  fit(weights, keys.padded);
  HWY_DYNAMIC_DISPATCH(NumeratorWeights)(keys, extra, weights.data());
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
