// One attention problem as the judge sees it: tensors in canonical axes, positions and documents
// resolved, so that "may query i see key j" is one short pure function. No arithmetic on scores
// here.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/spec.hpp"
#include "oracle/case/tensor.hpp"

namespace ringproof::oracle {

/// Dequantisation factors: shape axes are 1, full, or a divisor of the full size (blocks).
struct Factors {
  Tensor tensor;                                  // absent: every factor is 1
  std::array<std::int64_t, 4> block{1, 1, 1, 1};  // elements that share one factor, per axis
  double at(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) const {
    return tensor ? tensor.at(b / block[0], h / block[1], n / block[2], d / block[3]) : 1.0;
  }
};

/// Consecutive keys of one document whose positions never fall: a range that bisection can search.
struct KeyRun {
  std::int64_t first = 0, last = 0;                    // keys [first, last)
  std::int64_t position_first = 0, position_last = 0;  // of the first and of the last key in it
  std::int32_t document = 0;
};

struct Problem {
  std::int64_t batches = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  std::int64_t head_dim = 0, value_dim = 0;
  Tensor q;             // [B, H, Nq, D]
  Tensor k;             // [B, Hkv, Nk, D]
  Tensor v;             // [B, Hkv, Nk, Dv]
  Tensor bias, mask;    // [B, H, Nq, Nk] by strides, 0 where broadcast; absent: none
  Tensor alibi_slopes;  // [B, H, 1, 1] by strides
  Tensor sinks;         // [1, H, 1, 1] by strides
  Factors q_scale, k_scale, v_scale;
  std::vector<std::int64_t> key_length;              // [B]; Nk where the file has none
  std::vector<std::int64_t> position_q, position_k;  // [B, Nq], [B, Nk]: resolved for every row
  std::vector<std::int32_t> document_q, document_k;  // [B, Nq], [B, Nk]; -1: in no document
  Spec spec;
  /// [B], written by index_keys(), which whoever changes positions or documents calls again; empty:
  /// rows are scanned.
  std::vector<std::vector<KeyRun>> key_runs;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t kv_head(std::int64_t h) const { return h / group(); }
};

/// Keys [first, last) of a contiguous range, in key order.
struct KeyRange {
  std::int64_t first = 0, last = 0;
  std::int64_t size() const { return last - first; }
};

/// Fills key_runs from positions and documents, where there are few enough runs to be worth it.
void index_keys(Problem&);

/// May query i of head h see key j? Documents, key length, mask, causal, window, bias = -infinity.
bool visible(const Problem&, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);
/// The smallest range that holds every key query i can see by document, key length, causal and
/// window (mask and bias may hide more); {0, 0} if there is none.
KeyRange visible_range(const Problem&, std::int64_t b, std::int64_t i);
/// visible() for all keys of `range`, 1 or 0 each; the fast form the truth uses.
void visible_row(const Problem&, std::int64_t b, std::int64_t h, std::int64_t i, KeyRange range,
                 std::uint8_t* out);  // [range.size()]

}  // namespace ringproof::oracle
