// Loops of merges by LSE for every vector target (merge_loops.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/merge_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "oracle/contract/merge_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<double> kTag{};
using Vector = hn::Vec<hn::ScalableTag<double>>;

HWY_INLINE Vector Load(const std::vector<double>& array, std::int64_t j) {
  return hn::LoadU(kTag, array.data() + j);
}

void MergeWeighted(const WeightedMerge& merge, const RowKeys& keys, const BudgetsBefore& before,
                   MergedBudgets& out) {
  const double* HWY_RESTRICT score = keys.score.data();
  const double* HWY_RESTRICT key_common = keys.common.data();
  const double* HWY_RESTRICT key_common_lse = keys.common_lse.data();
  double* HWY_RESTRICT common = out.common.data();
  double* HWY_RESTRICT common_lse = out.common_lse.data();
  double* HWY_RESTRICT numerator = out.numerator.data();
  double* HWY_RESTRICT denominator = out.denominator.data();
  double* HWY_RESTRICT shared = out.shared.data();
  for (std::int64_t j = 0; j < keys.count; ++j) {
    const double lse = key_common_lse[j] + before.more;
    const WeightedGain gain = weighted_gain(merge, score[j], lse + before.denominator);
    shared[j] = gain.shared;
    common[j] = key_common[j] + before.more + gain.shared;
    common_lse[j] = lse + gain.shared;
    numerator[j] = before.numerator + merge.numerator + gain.numerator;
    denominator[j] = before.denominator + gain.denominator;
  }
}

// In the loops below the padding has the score M and budgets of zero: it is never above a key that
// holds the maximum.

BudgetMaxima Maxima(const RowKeys& keys, const ArgumentBudget& argument,
                    const MergedBudgets& budgets, double log_share) {
  const auto zero = hn::Zero(kTag), M = hn::Set(kTag, argument.max_score);
  const auto share = hn::Set(kTag, log_share), t_c = hn::Set(kTag, argument.temperature);
  auto reach = zero, partial = zero, largest_A = zero, largest_B = zero;
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto s = Load(keys.score, j);
    const auto A = Load(budgets.numerator, j), B = Load(budgets.denominator, j);
    const auto x = hn::Sub(hn::Add(s, Load(keys.error, j)), M);
    const auto above = hn::Add(x, hn::Mul(t_c, hn::Abs(x)));  // as above_maximum()
    reach = hn::Max(reach, hn::Add(hn::Add(above, hn::Max(A, B)), Load(budgets.shared, j)));
    const auto weight = hn::Min(zero, hn::Add(s, share));
    partial =
        hn::Max(partial, hn::Add(hn::Add(weight, A), hn::Add(B, Load(budgets.common_lse, j))));
    largest_A = hn::Max(largest_A, hn::Add(A, Load(keys.cast, j)));
    largest_B = hn::Max(largest_B, B);
  }
  const auto largest = [](Vector v) HWY_ATTR { return hn::GetLane(hn::MaxOfLanes(kTag, v)); };
  return {largest(reach), largest(partial), largest(largest_A), largest(largest_B)};
}

double PartialMaximum(const RowKeys& keys, double more, double log_share) {
  const auto zero = hn::Zero(kTag), share = hn::Set(kTag, log_share);
  auto partial = zero;
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto weight = hn::Min(zero, hn::Add(Load(keys.score, j), share));
    partial = hn::Max(partial, hn::Add(weight, Load(keys.common_lse, j)));
  }
  return hn::GetLane(hn::MaxOfLanes(kTag, partial)) + more;
}

LostShares Lost(const RowKeys& keys, const MergedBudgets& budgets) {
  const auto none = hn::Set(kTag, -HUGE_VAL), least = hn::Set(kTag, -600.0);
  auto heavy = hn::Zero(kTag), light = none;
  for (std::int64_t j = 0; j < keys.padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto log_p = Load(keys.log_p, j);
    const auto grown = hn::Add(hn::Add(Load(budgets.numerator, j), Load(keys.cast, j)),
                               Load(budgets.denominator, j));
    const auto has_share = hn::Gt(log_p, least);
    heavy = hn::Max(heavy, hn::IfThenElseZero(has_share, grown));
    const auto weightless = hn::Add(hn::Add(log_p, grown), Load(budgets.common, j));
    light = hn::Max(light, hn::IfThenElse(has_share, none, weightless));
  }
  return {hn::GetLane(hn::MaxOfLanes(kTag, heavy)), hn::GetLane(hn::MaxOfLanes(kTag, light))};
}

LseExtremes ExtremesOf(const RowKeys& keys) {
  LseExtremes result{0, HUGE_VAL};
  for (std::int64_t k = 0; k < keys.count; ++k) {
    const auto j = static_cast<std::size_t>(k);
    result.largest = std::max(result.largest, std::fabs(keys.score[j]) + keys.common_lse[j]);
    result.smallest = std::min(result.smallest, keys.score[j] - keys.common_lse[j]);
  }
  return result;
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(MergeWeighted);
HWY_EXPORT(Maxima);
HWY_EXPORT(PartialMaximum);
HWY_EXPORT(ExtremesOf);
HWY_EXPORT(Lost);

void merge_weighted(const WeightedMerge& merge, const RowKeys& keys, const BudgetsBefore& before,
                    MergedBudgets& out) {
  for (auto* array :
       {&out.common, &out.common_lse, &out.numerator, &out.denominator, &out.shared}) {
    fit(*array, keys.padded);
    std::fill(array->begin() + keys.count, array->begin() + keys.padded, 0.0);
  }
  HWY_DYNAMIC_DISPATCH(MergeWeighted)(merge, keys, before, out);
}

BudgetMaxima budget_maxima(const RowKeys& keys, const ArgumentBudget& argument,
                           const MergedBudgets& budgets, double log_share) {
  return HWY_DYNAMIC_DISPATCH(Maxima)(keys, argument, budgets, log_share);
}

LostShares lost_shares(const RowKeys& keys, const MergedBudgets& budgets) {
  return HWY_DYNAMIC_DISPATCH(Lost)(keys, budgets);
}

double partial_maximum(const RowKeys& keys, double more, double log_share) {
  return HWY_DYNAMIC_DISPATCH(PartialMaximum)(keys, more, log_share);
}

LseExtremes lse_extremes(const RowKeys& keys, double more) {
  const LseExtremes extremes = HWY_DYNAMIC_DISPATCH(ExtremesOf)(keys);
  return {extremes.largest + more, extremes.smallest - more};
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
