// Loops of the backward pass for every vector target (gradient_loops.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/gradient_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "oracle/contract/gradient_loops.hpp"
#include "oracle/contract/growth-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

/// p expm1(exponent) for all keys.
void GrowAll(const ExactProbabilities& exact, const double* exponent, std::int64_t padded,
             double* grown) {
  for (std::int64_t j = 0; j < padded; j += static_cast<std::int64_t>(hn::Lanes(kTag))) {
    const auto x = hn::LoadU(kTag, exponent + j);
    const auto p = hn::LoadU(kTag, exact.p.data() + j);
    const auto log_p = hn::LoadU(kTag, exact.log_p.data() + j);
    hn::StoreU(Grown(log_p, p, x, Growth(x)), kTag, grown + j);
  }
}

void Errors(const GradientBudget& c, const RowKeys& keys, GradientKeys& out) {
  const double* HWY_RESTRICT dp = out.dp.data();
  const double* HWY_RESTRICT abs_dp = out.abs_dp.data();
  double* HWY_RESTRICT product = out.product_error.data();
  double* HWY_RESTRICT factor = out.f_error.data();
  for (std::int64_t j = 0; j < keys.visible; ++j) product[j] = product_error(c, dp[j], abs_dp[j]);
  if (c.cap == 0) return;
  const double* HWY_RESTRICT capped = keys.capped.data();
  const double* HWY_RESTRICT error = keys.error.data();
  for (std::int64_t j = 0; j < keys.visible; ++j) factor[j] = factor_error(c, capped[j], error[j]);
}

HWY_INLINE GradientPair PairOf(const GradientBudget& c, const ExactProbabilities& exact,
                               const Probabilities& used, const GradientKeys& keys, std::size_t j) {
  const double dp = keys.dp[j];
  const double radius =
      c.dp_radius + c.delta_radius + 0x1p-52 * (std::fabs(dp) + std::fabs(c.delta));
  return {.p = exact.p[j],
          .t = std::fabs(dp - c.delta) + radius,
          .f = keys.f[j],
          .f_error = keys.f_error[j],
          .product_error = keys.product_error[j],
          .lost = used.lost_ds[j],
          .grown = keys.grown[j]};
}

/// dq, kbar and dbias. (32)
void WeighQuery(const GradientBudget& c, const RowKeys& keys, const ExactProbabilities& exact,
                const Probabilities& used, GradientKeys& out) {
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys.visible); ++j) {
    GradientPair x = PairOf(c, exact, used, out, j);
    const double underflow = score_gradient_underflow(c, x);
    out.signed_weight[j] = x.p * x.f;
    out.query_weight[j] = c.scale * c.grow_common * query_gradient_error(c, x, out.grown_query[j]) +
                          c.scale_or_one * c.grow_after_query * underflow;
    out.query_magnitude[j] = gradient_of_score(x) + score_gradient_error(c, x) + underflow;
    x.f = 1;
    x.f_error = 0;
    out.bias[j] = score_gradient_error(c, x) + underflow;
  }
}

/// dk and dv. (30), (31)
void WeighKeys(const GradientBudget& c, const RowKeys& keys, const ExactProbabilities& exact,
               const Probabilities& used, const KeyShares& shares, GradientKeys& out) {
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys.visible); ++j) {
    const GradientPair x = PairOf(c, exact, used, out, j);
    const double A = shares.relative_query[keys.index[j]];
    const double G = shares.relative_upstream[keys.index[j]];
    out.of_query[j] = c.scale * ((1 + A) * score_gradient_error(c, x) + A * gradient_of_score(x)) +
                      c.scale_or_one * (1 + A) * score_gradient_underflow(c, x);
    out.of_upstream[j] = out.grown_value[j] + used.lost_dv[j] * (1 + G);
    out.upstream_magnitude[j] = x.p + out.of_upstream[j];
  }
}

void Weights(const GradientBudget& c, const RowKeys& keys, const ExactProbabilities& exact,
             const Probabilities& used, const KeyShares* shares, GradientKeys& out) {
  double* HWY_RESTRICT exponent = out.exponent.data();
  const double* HWY_RESTRICT in_ds = used.in_ds.data();
  const double* HWY_RESTRICT in_dv = used.in_dv.data();
  const double in_row = c.common + c.product, in_query = c.product + c.after_query;
  for (std::int64_t j = 0; j < keys.padded; ++j) exponent[j] = in_ds[j] + in_row;
  GrowAll(exact, exponent, keys.padded, out.grown.data());
  for (std::int64_t j = 0; j < keys.padded; ++j) exponent[j] = in_ds[j] + in_query;
  GrowAll(exact, exponent, keys.padded, out.grown_query.data());
  WeighQuery(c, keys, exact, used, out);
  if (shares == nullptr) return;
  for (std::int64_t j = 0; j < keys.visible; ++j) {
    exponent[j] =
        in_dv[j] + c.common + shares->budget_upstream[keys.index[static_cast<std::size_t>(j)]];
  }
  GrowAll(exact, exponent, keys.padded, out.grown_value.data());
  WeighKeys(c, keys, exact, used, *shares, out);
}

void AddOuter(const double* weights, const double* vectors, std::int64_t rows, std::int64_t count,
              std::int64_t columns, double* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(kTag));
  for (std::int64_t n = 0; n < rows; ++n, weights += count, sums += columns) {
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      auto sum = hn::LoadU(kTag, sums + c);
      for (std::int64_t k = 0; k < count; ++k) {
        sum =
            hn::MulAdd(hn::Set(kTag, weights[k]), hn::LoadU(kTag, vectors + k * columns + c), sum);
      }
      hn::StoreU(sum, kTag, sums + c);
    }
    for (; c < columns; ++c) {
      for (std::int64_t k = 0; k < count; ++k) sums[c] += weights[k] * vectors[k * columns + c];
    }
  }
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(Errors);
HWY_EXPORT(Weights);
HWY_EXPORT(AddOuter);
HWY_EXPORT(GrowAll);

void GradientKeys::gather(const RowKeys& keys, const RowGradients& row) {
  for (auto* array : {&dp, &abs_dp, &f, &f_error, &product_error, &exponent, &grown, &grown_query,
                      &grown_value, &query_weight, &signed_weight, &of_query, &of_upstream,
                      &query_magnitude, &upstream_magnitude, &bias}) {
    fit(*array, keys.padded);
    std::fill_n(array->begin(), keys.padded, 0.0);
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(keys.visible); ++k) {
    const auto j = static_cast<std::size_t>(keys.index[k]);
    dp[k] = row.dp[j];
    abs_dp[k] = row.abs_dp[j];
    f[k] = row.factor.empty() ? 1.0 : std::fabs(row.factor[j]);
  }
  if (keys.has_sink) f[static_cast<std::size_t>(keys.visible)] = 1;
}

void gradient_errors(const GradientBudget& budget, const RowKeys& keys, GradientKeys& out) {
  HWY_DYNAMIC_DISPATCH(Errors)(budget, keys, out);
}

void gradient_weights(const GradientBudget& budget, const RowKeys& keys,
                      const ExactProbabilities& exact, const Probabilities& used,
                      const KeyShares* shares, GradientKeys& out) {
  HWY_DYNAMIC_DISPATCH(Weights)(budget, keys, exact, used, shares, out);
}

void add_outer_products(const double* weights, const double* vectors, std::int64_t rows,
                        std::int64_t count, std::int64_t columns, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddOuter)(weights, vectors, rows, count, columns, sums);
}

void grown_weights(const ExactProbabilities& exact, const double* x, std::int64_t padded,
                   double* grown) {
  HWY_DYNAMIC_DISPATCH(GrowAll)(exact, x, padded, grown);
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
