// One row of dense softmax attention, templated on the number type: the definition of the answer.
// Instantiated with interval arithmetic (interval_row.cpp) it is a proof; it is written to be read,
// not to be fast, and knows nothing of masks, scales or storage: scores in, answer out.
// Equations: w_j = exp(s_j - shift), l = sum w_j (+ the sink's weight), out = sum w_j v_j / l,
// lse = shift + log l. Any shift gives the same answer; one near the maximum keeps exp in range.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace ringproof::oracle {

template <class Number>
struct SoftmaxRow {
  std::vector<Number> out;  // [columns]
  Number lse;
};

/// `value(j)` gives row j of V as a range of `columns` numbers. `sink` may be null.
/// Precondition: there is a score or a sink.
template <class Number, class Values>
SoftmaxRow<Number> dense_softmax(std::span<const Number> scores,  // [keys]
                                 std::int64_t columns, Values&& value, const Number* sink,
                                 const Number& shift) {
  using std::exp;
  using std::log;
  SoftmaxRow<Number> row{std::vector<Number>(static_cast<std::size_t>(columns), Number(0)), {}};
  Number denominator = sink != nullptr ? Number(exp(Number(*sink - shift))) : Number(0);
  Number term;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const Number weight = exp(Number(scores[j] - shift));
    const auto& v = value(j);
    denominator += weight;
    for (std::size_t c = 0; c < row.out.size(); ++c) {
      term = weight * v[c];
      row.out[c] += term;
    }
  }
  for (Number& element : row.out) element /= denominator;
  row.lse = shift + log(denominator);
  return row;
}

}  // namespace ringproof::oracle
