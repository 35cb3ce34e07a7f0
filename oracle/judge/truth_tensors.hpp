// The truth of a whole case as tensors: certified intervals, and the correctly rounded answer where
// the interval decides it. What `ringproof truth` writes.
#pragma once

#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

/// Arrays in canonical order. The exact out of (b, h, i, c) lies in [out_lo, out_hi], the exact LSE
/// of (b, h, i) in [lse_lo, lse_hi]. A row without visible key or sink holds what the spec's
/// `empty_row` says (anything: minus to plus infinity); a row that sees a number that is not finite
/// holds NaN.
struct TruthTensors {
  std::vector<double> out_lo, out_hi;  // [B, H, Nq, Dv]
  std::vector<double> lse_lo, lse_hi;  // [B, H, Nq], in the base asked for
};

TruthTensors truth_tensors(const Problem&, LseBase, unsigned bits, const WalkOptions&);

/// Bytes of `type`: the common rounding of both ends, NaN where they round differently.
std::vector<std::byte> decided(DType type, const std::vector<double>& lo,
                               const std::vector<double>& hi);

}  // namespace ringproof::oracle
