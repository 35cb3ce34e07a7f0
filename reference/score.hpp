// The one score rule of all tiers (1): what happens between q.k and the softmax.
//   s = scale * (q.k);  s <- c tanh(s / c);  s <- s + bias;  s <- s - slope |distance|
// and, for the backward pass, its derivative. Visibility is decided before (problem.hpp): an
// invisible key has score minus infinity, and nothing of it, not even a NaN, is read.
#pragma once

#include "reference/problem.hpp"

namespace ringproof::reference {

/// q.k of one query and one key, summed in the order of the components.
template <class Real>
Real dot(Numbers<Real> q,    // [D]
         Numbers<Real> k) {  // [D]
  Real sum{0};
  for (std::size_t d = 0; d < q.size(); ++d) sum = sum + q[d] * k[d];
  return sum;
}

/// Score of a visible key from its dot product.
template <class Real>
Real score(const Problem<Real>& problem, const QueryRow& query, Index j, const Real& dot_product) {
  const auto [b, h, i] = query;
  Real s = problem.scale * dot_product;
  if (problem.softcap != Real{0}) {
    s = problem.softcap * Number<Real>::hyperbolic_tangent(s / problem.softcap);
  }
  if (problem.bias) s = s + problem.bias(b, h, i, j);
  if (problem.alibi_slopes) {
    const auto apart = distance(query_position(problem, b, i), key_position(problem, b, j));
    s = s - problem.alibi_slopes(b, h, 0, 0) * Real(apart);
  }
  return s;
}

/// The derivative of the softcap at a score (26): 1 - tanh^2(s / c), and 1 without one. The scale
/// is left to the sums, which it multiplies once.
template <class Real>
Real score_slope(const Problem<Real>& problem, const Real& dot_product) {
  if (problem.softcap == Real{0}) return Real{1};
  const Real s = problem.scale * dot_product;
  const Real y = Number<Real>::hyperbolic_tangent(s / problem.softcap);
  return Real{1} - y * y;
}

/// The same from the two vectors, whose product is only formed if it is wanted.
template <class Real>
Real score_slope(const Problem<Real>& problem,
                 Numbers<Real> q,    // [D]
                 Numbers<Real> k) {  // [D]
  return problem.softcap == Real{0} ? Real{1} : score_slope(problem, dot<Real>(q, k));
}

}  // namespace ringproof::reference
