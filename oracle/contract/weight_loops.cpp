// Weights and sums over the keys of one row for every vector target (weight_loops.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/weight_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "oracle/contract/growth-inl.hpp"
#include "oracle/contract/row_keys.hpp"
#include "oracle/contract/weight_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

/// p with its common factor e^C.
struct Common {
  Vector weight;  // p (e^C - 1)
  Vector grown;   // p e^C
  Vector shrunk;  // p e^-C
  Vector log;     // ln(p e^C)
};
HWY_INLINE Common CommonOf(const KeyBudgetView& keys, std::int64_t j) {
  const auto log_p = hn::LoadU(kTag, keys.log_p + j), p = hn::LoadU(kTag, keys.p + j);
  const auto C = hn::Add(hn::LoadU(kTag, keys.common + j), hn::Set(kTag, keys.more));
  const auto one = hn::Set(kTag, 1.0);
  const auto growth = Growth(C);
  Common result{hn::Mul(p, growth), p, hn::Div(p, hn::Add(one, growth)), hn::Add(log_p, C)};
  result.grown = hn::Add(p, result.weight);
  const auto small = hn::Lt(C, one);
  if (HWY_LIKELY(hn::AllTrue(kTag, small))) return result;
  const auto grown = Exponential(result.log);
  result.weight = hn::IfThenElse(small, result.weight, grown);
  result.grown = hn::IfThenElse(small, result.grown, grown);
  result.shrunk = hn::IfThenElse(small, result.shrunk, Exponential(hn::Sub(log_p, C)));
  return result;
}

double Sum(Vector v) { return hn::GetLane(hn::SumOfLanes(kTag, v)); }

/// A budget of key j: from an array, or the same for all keys.
template <bool kUniform>
HWY_INLINE Vector BudgetOf(const double* of_key, double of_all, std::int64_t j) {
  if constexpr (kUniform) return hn::Set(kTag, of_all);
  return hn::LoadU(kTag, of_key + j);
}

template <bool kUniform>
HWY_INLINE LseSums SumLse(const KeyBudgetView& keys) {
  const auto one = hn::Set(kTag, 1.0), more = hn::Set(kTag, keys.more);
  auto above = hn::Zero(kTag), below = hn::Zero(kTag);
  auto shrunk_sum = hn::Zero(kTag), largest = hn::Zero(kTag);
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto B = BudgetOf<kUniform>(keys.denominator, keys.denominator_of_all, j);
    const auto budget = hn::Add(hn::Add(hn::LoadU(kTag, keys.common_lse + j), more), B);
    const auto log_p = hn::LoadU(kTag, keys.log_p + j), p = hn::LoadU(kTag, keys.p + j);
    const auto growth = hn::Expm1(kTag, hn::Min(budget, hn::Set(kTag, 700.0)));
    above = hn::Add(above, Grown(log_p, p, budget, growth));
    // e^-x, and 1 - e^-x = (e^x - 1) / e^x.
    const auto shrunk = hn::Div(p, hn::Add(one, growth));
    shrunk_sum = hn::Add(shrunk_sum, shrunk);
    below = hn::MulAdd(shrunk, growth, below);
    largest = hn::Max(largest, budget);
  }
  return {Sum(above), Sum(below), Sum(shrunk_sum), hn::GetLane(hn::MaxOfLanes(kTag, largest))};
}

LseSums LseSumsOf(const KeyBudgetView& keys) {
  return keys.denominator == nullptr ? SumLse<true>(keys) : SumLse<false>(keys);
}

template <bool kUniform>
HWY_INLINE void Weigh(const KeyBudgetView& keys, KeyWeights& out) {
  const auto one = hn::Set(kTag, 1.0);
  const auto growth_A_of_all = Growth(hn::Set(kTag, keys.numerator_of_all));
  const auto growth_B_of_all = Growth(hn::Set(kTag, keys.denominator_of_all));
  auto common_sum = hn::Zero(kTag), numerator_sum = hn::Zero(kTag);
  auto denominator_sum = hn::Zero(kTag), shrunk_sum = hn::Zero(kTag);
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto cast = hn::LoadU(kTag, keys.cast + j);
    const auto A = BudgetOf<kUniform>(keys.numerator, keys.numerator_of_all, j);
    const auto B = BudgetOf<kUniform>(keys.denominator, keys.denominator_of_all, j);
    const auto growth_A = kUniform ? growth_A_of_all : Growth(A);
    const auto growth_B = kUniform ? growth_B_of_all : Growth(B);
    const Common common = CommonOf(keys, j);
    const auto of_cast = Grown(common.log, common.grown, cast, Growth(cast));
    const auto beyond =
        Grown(hn::Add(common.log, cast), hn::Add(common.grown, of_cast), A, growth_A);
    const auto numerator = hn::Add(of_cast, beyond);
    hn::StoreU(common.weight, kTag, out.common.data() + j);
    hn::StoreU(of_cast, kTag, out.cast.data() + j);
    hn::StoreU(beyond, kTag, out.beyond_cast.data() + j);
    hn::StoreU(numerator, kTag, out.numerator.data() + j);
    common_sum = hn::Add(common_sum, common.weight);
    numerator_sum = hn::Add(numerator_sum, numerator);
    denominator_sum = hn::Add(denominator_sum, Grown(common.log, common.grown, B, growth_B));
    // Where B >= 1, growth_B is e - 1 and e^-B needs its own exponential.
    const auto small = hn::Lt(B, one);
    auto shrink = hn::Div(one, hn::Add(one, growth_B));
    if (HWY_UNLIKELY(!hn::AllTrue(kTag, small))) {
      shrink = hn::IfThenElse(small, shrink, Exponential(hn::Neg(B)));
    }
    shrunk_sum = hn::MulAdd(common.shrunk, shrink, shrunk_sum);
  }
  out.common_sum = Sum(common_sum);
  out.numerator_sum = Sum(numerator_sum);
  out.denominator_sum = Sum(denominator_sum);
  out.shrunk_sum = Sum(shrunk_sum);
}

void KeyWeightsOf(const KeyBudgetView& keys, KeyWeights& out) {
  if (keys.numerator == nullptr) return Weigh<true>(keys, out);
  Weigh<false>(keys, out);
}

void NumeratorWeights(const KeyBudgetView& keys, double extra, double* weights) {
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const Common common = CommonOf(keys, j);
    const auto budget = hn::Add(hn::LoadU(kTag, keys.cast + j), hn::Set(kTag, extra));
    hn::StoreU(Grown(common.log, common.grown, budget, Growth(budget)), kTag, weights + j);
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
