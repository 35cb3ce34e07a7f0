// A KV head with all its query rows, built by hand in long double for tests of the gradients'
// bounds: no truth library, no case file, no tensor but a mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "oracle/contract/backward_bound.hpp"

namespace ringproof::test {

struct GradientFixture {
  oracle::Problem problem;
  std::int64_t rows = 0;                        // H * Nq
  std::vector<double> q, k, v, dout, dlse;      // [rows, D], [Nk, D], [Nk, Dv], [rows, Dv], [rows]
  std::vector<double> bias;                     // [Nk], the same for all rows, or empty
  std::vector<double> sinks;                    // [H] or empty
  std::vector<double> given_out, given_lse;     // [rows, Dv], [rows]: isolated mode, or empty
  std::vector<std::uint8_t> mask;               // [Nq, Nk] or empty
  std::vector<oracle::RowTruth> truth;          // [rows]
  std::vector<oracle::RowGradients> gradients;  // [rows]

  static GradientFixture random(std::uint64_t seed);
  bool isolated() const { return !given_lse.empty(); }
  oracle::BackwardHead head() const {
    return {problem, k.data(), problem.head_dim, v.data(), problem.value_dim};
  }
  oracle::GivenForward given() const;
  /// Exact numbers of every row.
  void finish();

 private:
  void forward_row(std::int64_t row);
  void backward_row(std::int64_t row);
};

}  // namespace ringproof::test
