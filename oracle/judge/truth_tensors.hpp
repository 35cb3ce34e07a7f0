// The truth of a whole case as tensors: certified intervals, and the correctly rounded answer where
// the interval decides it. What `ringproof truth` writes.
#pragma once

#include <optional>

#include "oracle/case/case_file.hpp"
#include "oracle/judge/interval_tensor.hpp"
#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

/// An empty row (no visible key, no sink) holds what the spec's `empty_row` says; anything: minus
/// to plus infinity.
struct TruthTensors {
  IntervalTensor out;  // [B, H, Nq, Dv]
  IntervalTensor lse;  // [B, H, Nq], in the base asked for
};

/// The types to which answers are rounded.
struct RoundTo {
  DType out, lse;
};

/// With `round_to`, a row is raised to more digits until all of it is decided, and exact ties are
/// recognised as such (exact_row.hpp); what 2048 digits do not decide is NaN.
TruthTensors truth_tensors(const Problem&, LseBase, unsigned bits, const WalkOptions&,
                           const std::optional<RoundTo>& round_to = {});

}  // namespace ringproof::oracle
