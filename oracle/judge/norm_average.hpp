// The mutated truth NORM-AVERAGE: every rank normalises its own partial result, and the partials
// are averaged. The mistake that the ring's un-normalised state exists to avoid. The class says
// nothing about the LSE: a kernel that never merges row sums has none to give.
#pragma once

#include <vector>

#include "oracle/contract/bound.hpp"
#include "oracle/judge/accept.hpp"

namespace ringproof::oracle {

/// What a kernel with the mistake and otherwise conforming arithmetic may give on one row.
struct MutantRow {
  std::string not_applicable;    // the assumption that fails on a partial, or empty
  std::vector<Certified> exact;  // [Dv]
  std::vector<double> bound;     // [Dv] e_b of (36), before the output is rounded
};

/// How empty partials enter the average.
enum class AverageOver { partials_with_keys, all_ranks };

class NormAverage {
 public:
  /// `ranks` > 1 partial results.
  NormAverage(const Problem&, const Contract&, std::int64_t ranks);

  /// Precondition: the row is certified, applicable and not empty. `values` as in bound_row.
  void row(const RowTruth&, const double* values, std::int64_t stride, AverageOver, MutantRow&);

 private:
  bool select_partial(const RowTruth&, std::int64_t rank);
  void partial_output(const RowTruth&, const double* values, std::int64_t stride);

  const Problem& problem_;
  Contract partial_contract_;  // one partial is one kernel without merges
  double merge_budget_;        // log budget of storing and averaging the partials
  double merge_eta_;           // their underflow
  std::int64_t ranks_;
  std::vector<std::vector<std::int64_t>> owner_;  // [B][Nk]
  RowTruth partial_;
  RowBound partial_bound_;
};

}  // namespace ringproof::oracle
