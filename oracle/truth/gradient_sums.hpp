// The memory behind GradientSums: for every key a row of sums for dk (before the scale) and for dv,
// each as hi, lo and an error bound. What is added and with which error is gradient_tile-inl.hpp
// for double-double rows and interval_gradients.cpp for the others.
#pragma once

#include <vector>

#include "oracle/truth/backward.hpp"
#include "oracle/truth/row_batch.hpp"

namespace ringproof::oracle {

/// Sums of one gradient. Row n belongs to the n-th key that is wanted.
struct KeySums {
  std::int64_t columns = 0;
  std::int64_t stride = 0;        // a multiple of 8, at least `columns`; no multiple of 64
  AlignedArray high, low, error;  // [slots, stride]: |exact - high - low| <= error

  void reset(std::int64_t slots, std::int64_t columns);
  /// Adds a certified number to one element.
  void add(std::int64_t slot, std::int64_t column, const Certified&);
  Certified at(std::int64_t slot, std::int64_t column) const;
};

struct GradientSums::Impl {
  std::vector<std::int32_t> slot;            // [Nk] -1: not wanted
  std::vector<std::uint8_t> seen, excluded;  // [Nk] excluded: not applicable
  std::int64_t slots = 0;
  Certified scale;
  KeySums dk, dv;
};

/// Marks the keys that a row sees: as seen, and as not applicable if the row is `excluded`.
void mark_seen(const Problem&, const RowTruth&, bool excluded, GradientSums::Impl&);

/// Stride of rows of `columns` numbers: whole vectors, and not a multiple of 64, so that rows do
/// not compete for the same cache lines.
std::int64_t row_stride(std::int64_t columns);
/// The scale as hi + lo: the spec's exactly, or the real number 1/sqrt(D) to 2^-106.
Certified exact_scale(const Problem&);
/// x times such a scale.
Certified scaled(const Certified& x, const Certified& scale);

}  // namespace ringproof::oracle
