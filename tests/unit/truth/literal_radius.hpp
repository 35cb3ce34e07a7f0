// The radii of docs/double_double.md and docs/backward_truth.md a second time: every lemma read
// literally, on plain numbers, key by key, without the code or the constants of the truth. For a
// test that every term is charged, and none twice. Not for inputs with factors or masks.
#pragma once

#include <vector>

#include "oracle/truth/backward.hpp"

namespace ringproof::test {

/// One row: what the truth says of it, and the radii that the lemmas give.
struct LiteralRow {
  double lse = 0;               // radius of the LSE
  double score_excess = 0;      // of the scores, what 2^-53 of them does not cover
  std::vector<double> out;      // [Dv] radii
  std::vector<double> abs_dot;  // [keys] the upper bounds that the contract reads

  // Of the backward pass; empty or 0 without `upstream`.
  double D = 0, dsink = 0;
  std::vector<double> dq, dbias;                 // [D], [keys]
  std::vector<double> p, p_error, ds, ds_error;  // [keys]
};

/// The row of which the truth says `row`; with `gradients`, its backward pass as well.
LiteralRow literal_row(const oracle::Problem&, const oracle::RowTruth& row, bool tight,
                       const oracle::Upstream* upstream, const oracle::RowGradients* gradients);

/// Radii of dk and dv of one KV head whose rows are computed `at_once` at a time.
struct LiteralKeys {
  std::vector<double> dk, dv;  // [keys, D], [keys, Dv]
};
LiteralKeys literal_keys(const oracle::Problem&, const std::vector<oracle::RowGradients>&,
                         const std::vector<LiteralRow>&, bool tight, std::size_t at_once);

}  // namespace ringproof::test
