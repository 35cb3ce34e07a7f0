// A dilated mask in the ring: docs/how-to/add-a-mask.md, tried on a copy that has its patches.
// All scores are 0 and all values small integers, so every sum is exact and two ways to the same
// answer must agree bit for bit.
#include <iostream>

#include "reference/dense.hpp"
#include "reference/ring.hpp"

using namespace ringproof::reference;

int main() {
  constexpr Index N = 13;
  const std::vector<double> zeros(N, 0.0);
  std::vector<double> values(N);
  for (Index j = 0; j < N; ++j) values[j] = static_cast<double>(j);

  Problem<double> problem{.queries = N, .keys = N, .head_dim = 1, .value_dim = 1};
  problem.q = problem.k = row_major<double>(zeros, {1, 1, N, 1});
  problem.v = row_major<double>(values, {1, 1, N, 1});
  problem.causal = true;
  problem.dilation = 3;

  const Answer<double> dense = dense_attention(problem);
  for (Index i = 0; i < N; ++i) {  // i sees i, i - 3, i - 6, ...: their mean
    const double mean = static_cast<double>(i) - 1.5 * static_cast<double>(i / 3);
    if (dense.out[i] != mean) return std::cout << "row " << i << " is wrong\n", 1;
  }
  for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped}) {
    for (Index ranks = 1; ranks <= 5; ++ranks) {
      Trace trace;
      if (ring_attention(problem, {ranks, layout}, trace).out != dense.out) {
        return std::cout << "the ring differs on " << ranks << " ranks\n", 1;
      }
    }
  }
  std::cout << "a dilation of 3: dense and ring agree, 3 layouts, 1 to 5 ranks\n";
}
