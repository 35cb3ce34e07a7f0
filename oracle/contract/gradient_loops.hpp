// Loops over the keys of one row of the backward pass, (27a)-(33) of docs/contract.md; compiled
// once for every vector target.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/contract/gradient_formulas.hpp"
#include "oracle/contract/probabilities.hpp"

namespace ringproof::oracle {

/// The visible keys of a row, then its sink (for which dP = 0 and f = 1): arrays [padded].
struct GradientKeys {
  std::vector<double> dp, abs_dp, f, f_error, product_error;
  // Log budgets and what they make of p: p expm1(..) for Y, Y' and XV + Lam' + Gg + hat(u_doin).
  std::vector<double> exponent, grown, grown_query, grown_value;
  std::vector<double> query_weight;   // factor of |k| in the bound of dq
  std::vector<double> signed_weight;  // p f, whose signed sum with k is kbar
  // Of dk and dv: factors of |q| and |dO|, and how large dS and P may be.
  std::vector<double> of_query, of_upstream, query_magnitude, upstream_magnitude;
  std::vector<double> bias;  // bound of p t

  void gather(const RowKeys&, const RowGradients&);
};

/// EP and Ef of every key.
void gradient_errors(const GradientBudget&, const RowKeys&, GradientKeys&);

/// The key's own share of a sum of gradients, read at the keys of the row. [Nk]
struct KeyShares {
  const double* relative_query;     // expm1(A_k)
  const double* relative_upstream;  // expm1(Gg + hat(u_doin))
  const double* budget_upstream;    // Gg + hat(u_doin)
};

/// Everything that (30)-(33) sum over the keys or rows. `shares` may be null: then nothing of dk
/// and dv is filled.
void gradient_weights(const GradientBudget&, const RowKeys&, const ExactProbabilities&,
                      const Probabilities&, const KeyShares* shares, GradientKeys&);

/// sums[n, c] += sum over `count` of weights[n, count] vectors[count, c].
void add_outer_products(const double* weights, const double* vectors, std::int64_t rows,
                        std::int64_t count, std::int64_t columns, double* sums);

/// p expm1(x) of every key, never as a product of 0 and infinity.
void grown_weights(const ExactProbabilities&, const double* x, std::int64_t padded,
                   double* grown);  // [padded] each

}  // namespace ringproof::oracle
