// One query row for the adversary, in plain numbers, and what the judge needs to bound it: a
// RowTruth
// and a Problem built by hand in extended precision. The truth engine takes no part, so that an
// error
// there cannot hide an error of the bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/case/spec.hpp"
#include "oracle/truth/truth.hpp"
#include "tests/emulate/owned_problem.hpp"

namespace ringproof::adversary {

/// Keys are the visible ones only; their places among all keys are `position`, ascending.
struct Row {
  std::int64_t head_dim = 0, value_dim = 0;
  std::vector<double> query;        // [D]
  std::vector<double> keys;         // [n, D]
  std::vector<double> values;       // [n, Dv]
  std::vector<double> bias, alibi;  // [n], or empty: the two additions to the score
  std::optional<double> sink;
  std::vector<std::int64_t> position;  // [n]
  std::int64_t total_keys = 0;         // Nk: also those the row does not see
  std::int64_t query_position = 0;
  double scale = 1, softcap = 0;
  std::int64_t ranks = 1;
  std::optional<oracle::Ring> ring;  // present: the partition is known to the judge

  std::int64_t visible() const { return static_cast<std::int64_t>(position.size()); }
  double value(std::int64_t j, std::int64_t column) const {
    return values[static_cast<std::size_t>(j * value_dim + column)];
  }
};

/// A row with everything bound_row() reads, and its exact answer.
struct JudgedRow {
  emulate::OwnedProblem owned;
  oracle::RowTruth truth;
  std::vector<double> values;    // [Nk, Dv]
  std::vector<long double> out;  // [Dv]
  long double lse = 0;
};

/// How the row is shown to the judge; all but the first are ablations.
enum class Shown {
  as_it_is,
  without_holes,  // as if its visible keys were consecutive
  sink_as_key,    // the sink as one more key with value 0 and an exact score
};
JudgedRow judged_row(const Row&, Shown = Shown::as_it_is);

}  // namespace ringproof::adversary
