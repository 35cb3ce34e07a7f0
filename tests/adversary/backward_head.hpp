// One KV head with all its query rows for the adversary of the backward pass, in plain numbers, and
// its exact gradients built by hand in extended precision. The truth engine takes no part.
#pragma once

#include <random>
#include <vector>

#include "oracle/truth/backward.hpp"
#include "tests/adversary/families.hpp"
#include "tests/adversary/row.hpp"

namespace ringproof::adversary {

/// What dO and the upstream gradient of the LSE look like.
enum class Upstream { randn, tiny, huge, with_lse };

struct Head {
  std::vector<Row> rows;  // [G * Nq], heads one after the other; same keys and values
  std::int64_t group = 1, queries = 1;
  std::vector<double> dout, dlse;    // [rows, Dv], [rows]
  std::vector<double> keys, values;  // [Nk, D], [Nk, Dv] at the places of all keys
  std::int64_t total_keys = 0, head_dim = 0, value_dim = 0;
  // Isolated mode: the outputs and LSE that the backward pass is given.
  std::vector<double> given_out, given_lse;  // [rows, Dv], [rows]; empty otherwise
  double upstream(std::size_t row, std::int64_t c) const {
    return dout[row * static_cast<std::size_t>(value_dim) + static_cast<std::size_t>(c)];
  }
};

struct HeadOptions {
  RowOptions row = {};
  std::int64_t group = 1, queries = 4;
  bool isolated = false;
};
Head make_head(Family, Upstream, const HeadOptions&, std::mt19937_64&);

/// The head with everything bound_row_backward() reads, and its exact answer.
struct JudgedHead {
  emulate::OwnedProblem owned;
  oracle::GivenForward given;
  std::vector<oracle::RowTruth> truth;          // [rows]
  std::vector<oracle::RowGradients> gradients;  // [rows]
  std::vector<long double> dq, dk, dv;          // [rows, D], [Nk, D], [Nk, Dv]
  long double dsinks = 0;                       // of all rows, whatever head they belong to
};
JudgedHead judged_head(const Head&);

}  // namespace ringproof::adversary
