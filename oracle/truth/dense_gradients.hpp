// One row of the backward pass of dense attention, templated on the number type: the definition of
// the gradients, beside dense_softmax.hpp. Instantiated with interval arithmetic
// (interval_gradients.cpp) it is a proof; it is written to be read, not to be fast.
// Equations: dP_j = dO . v_j, t_j = p_j (dP_j - D + dL), dS_j = t_j f_j, where f_j is the
// derivative of the softcap; t_j is the gradient of the bias.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringproof::oracle {

template <class Number>
Number inner_product(std::span<const Number> a, std::span<const Number> b) {
  Number sum = 0, term;
  for (std::size_t n = 0; n < a.size(); ++n) {
    term = a[n] * b[n];
    sum += term;
  }
  return sum;
}

template <class Number>
struct ScoreGradients {
  std::vector<Number> dp;     // [keys] dP_j
  std::vector<Number> dbias;  // [keys] t_j
  std::vector<Number> ds;     // [keys] dS_j
};

/// `value(j)` gives row j of V. `tanh`: of score / cap, empty without a softcap. D is dO . o.
template <class Number, class Values>
ScoreGradients<Number> dense_score_gradients(std::span<const Number> p,     // [keys]
                                             std::span<const Number> tanh,  // [keys] or empty
                                             std::span<const Number> dout,  // [Dv]
                                             const Number& D, const Number& dlse, Values&& value) {
  ScoreGradients<Number> row;
  for (std::size_t j = 0; j < p.size(); ++j) {
    row.dp.push_back(inner_product<Number>(dout, value(j)));
    row.dbias.push_back(p[j] * (row.dp[j] - D + dlse));
    row.ds.push_back(row.dbias[j]);
    if (!tanh.empty()) row.ds[j] *= 1 - tanh[j] * tanh[j];
  }
  return row;
}

}  // namespace ringproof::oracle
