// Sums over keys and columns for every vector target (weight_loops.hpp).
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

/// Calls group(tag, column) for all columns, full vectors first, then one by one.
template <class Group>
HWY_INLINE void ForColumns(std::int64_t columns, const Group& group) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(kTag));
  std::int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) group(kTag, c);
  const hn::CappedTag<double, 1> single;
  for (; c < columns; ++c) group(single, c);
}

void ColumnRangeOf(const ValueRows& rows, ColumnRange& out) {
  ForColumns(rows.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
    auto sum = hn::Zero(tag), abs_sum = hn::Zero(tag);
    auto largest = hn::Set(tag, -HUGE_VAL), smallest = hn::Set(tag, HUGE_VAL);
    for (std::int64_t k = 0; k < rows.visible; ++k) {
      const auto v = hn::LoadU(tag, rows.values + rows.index[k] * rows.stride + c);
      sum = hn::Add(sum, v);
      abs_sum = hn::Add(abs_sum, hn::Abs(v));
      largest = hn::Max(largest, v);
      smallest = hn::Min(smallest, v);
    }
    hn::StoreU(sum, tag, out.sum.data() + c);
    hn::StoreU(abs_sum, tag, out.abs_sum.data() + c);
    hn::StoreU(largest, tag, out.largest.data() + c);
    hn::StoreU(smallest, tag, out.smallest.data() + c);
  });
}

void ColumnErrorsOf(const ValueRows& rows, const KeyWeights& weights, const double* o,
                    ColumnErrors& errors) {
  ForColumns(rows.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
    const auto out = hn::LoadU(tag, o + c);
    auto common = hn::Zero(tag), numerator = hn::Zero(tag);
    for (std::int64_t k = 0; k < rows.visible; ++k) {
      const auto v = hn::LoadU(tag, rows.values + rows.index[k] * rows.stride + c);
      const auto of_common = hn::Set(tag, weights.common[static_cast<std::size_t>(k)]);
      const auto of_numerator = hn::Set(tag, weights.numerator[static_cast<std::size_t>(k)]);
      common = hn::MulAdd(of_common, hn::Abs(hn::Sub(v, out)), common);
      numerator = hn::MulAdd(of_numerator, hn::Abs(v), numerator);
    }
    hn::StoreU(common, tag, errors.common.data() + c);
    hn::StoreU(numerator, tag, errors.numerator.data() + c);
  });
}

void VirtualColumn(const ValueRows& rows, const double* g, double* y, double* abs_y) {
  for (std::int64_t k = 0; k < rows.visible; ++k) {
    const double* row = rows.values + rows.index[k] * rows.stride;
    auto signed_sum = hn::Zero(kTag), abs_sum = hn::Zero(kTag);
    double signed_tail = 0, abs_tail = 0;
    std::int64_t c = 0;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(kTag));
    for (; c + lanes <= rows.columns; c += lanes) {
      const auto term = hn::Mul(hn::LoadU(kTag, g + c), hn::LoadU(kTag, row + c));
      signed_sum = hn::Add(signed_sum, term);
      abs_sum = hn::Add(abs_sum, hn::Abs(term));
    }
    for (; c < rows.columns; ++c) {
      signed_tail += g[c] * row[c];
      abs_tail += g[c] * row[c] < 0 ? -(g[c] * row[c]) : g[c] * row[c];
    }
    y[k] = Sum(signed_sum) + signed_tail;
    abs_y[k] = Sum(abs_sum) + abs_tail;
  }
}

void AddWeightedValues(const ValueRows& rows, const double* weight, std::int64_t first,
                       std::int64_t last, bool absolute, double* sums) {
  ForColumns(rows.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
    auto sum = hn::LoadU(tag, sums + c);
    for (std::int64_t k = first; k < last; ++k) {
      const auto v = hn::LoadU(tag, rows.values + rows.index[k] * rows.stride + c);
      sum = hn::MulAdd(hn::Set(tag, weight[k]), absolute ? hn::Abs(v) : v, sum);
    }
    hn::StoreU(sum, tag, sums + c);
  });
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(LseSumsOf);
HWY_EXPORT(KeyWeightsOf);
HWY_EXPORT(NumeratorWeights);
HWY_EXPORT(ColumnRangeOf);
HWY_EXPORT(ColumnErrorsOf);
HWY_EXPORT(VirtualColumn);
HWY_EXPORT(AddWeightedValues);

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

void column_range(const ValueRows& rows, ColumnRange& out) {
  for (auto* array : {&out.sum, &out.abs_sum, &out.largest, &out.smallest}) {
    fit(*array, rows.columns);
  }
  HWY_DYNAMIC_DISPATCH(ColumnRangeOf)(rows, out);
}

void column_errors(const ValueRows& rows, const KeyWeights& weights, const double* out,
                   ColumnErrors& errors) {
  fit(errors.common, rows.columns);
  fit(errors.numerator, rows.columns);
  HWY_DYNAMIC_DISPATCH(ColumnErrorsOf)(rows, weights, out, errors);
}

void virtual_column(const ValueRows& rows, const double* weight_of_column, std::vector<double>& y,
                    std::vector<double>& abs_y) {
  fit(y, rows.visible + kPadding);
  fit(abs_y, rows.visible + kPadding);
  HWY_DYNAMIC_DISPATCH(VirtualColumn)(rows, weight_of_column, y.data(), abs_y.data());
}

void add_weighted_values(const ValueRows& rows, const double* weight, std::int64_t first,
                         std::int64_t last, bool absolute, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddWeightedValues)(rows, weight, first, last, absolute, sums);
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
