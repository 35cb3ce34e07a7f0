// What both paths to the truth need before any arithmetic: which keys a row sees, its sink, its
// bias, and whether every number it depends on is finite. No score is computed here.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// What begin_row finds out and RowTruth does not keep.
struct RowInputs {
  std::vector<std::uint8_t> visible;  // [keys] 1 or 0
  std::vector<double> q;              // [D] the query as it is used
  bool exact_q = true;                // false: a dequantised number is not one of binary64
};

/// Fills b, h, i, keys, visible, not_applicable, sink and bias of `row`, and `inputs`.
/// `keys_finite`: 0 where a row of K or V of this KV head holds a value that is not finite; null:
/// none. Returns false if nothing is left to compute: not applicable, or the row is empty or has a
/// sink only; then the answer is complete.
bool begin_row(const Problem&, std::int64_t b, std::int64_t h, std::int64_t i,
               const std::uint8_t* keys_finite,  // [Nk]
               RowTruth& row, RowInputs& inputs);

/// 1 where row j of K and V, dequantised, is finite throughout, else 0.
std::uint8_t key_is_finite(const Problem&, std::int64_t b, std::int64_t kv_head, std::int64_t j,
                           std::vector<double>& scratch);

/// One row of a stored tensor as it is used, dequantisation factors multiplied in.
/// Returns false if a product is not exact in binary64 (then `out` holds its rounding).
bool decode_scaled(const Tensor&, const Factors&, std::int64_t b, std::int64_t h, std::int64_t n,
                   double* out);  // [D]

/// |position of query i - position of key j|, exact.
std::uint64_t distance(const Problem&, std::int64_t b, std::int64_t i, std::int64_t j);

}  // namespace ringproof::oracle
