// One generated case as plain data, before any number is drawn: family, semantics, sizes, types.
// A suite is a list of these (suite.hpp); generated_case.hpp turns one into tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/case/spec.hpp"
#include "oracle/generate/input_family.hpp"

namespace ringproof::oracle {

/// How rows get positions and documents.
enum class RowPlan {
  plain,
  lengths,          // key_lengths, one 0 and one full among them; what lies behind is poison
  documents,        // cu_seqlens of odd lengths, one of them 0
  documents_apart,  // the same with different lengths of queries and keys
  zigzag,           // the order in which three ranks hold the rows, zig-zag
  striped,          // five ranks, striped
  permuted,         // documents_* and positions_* in a random order
};
enum class MaskPlan {
  none,
  random,      // half of the pairs, per head; some rows see nothing
  late_start,  // the first two thirds of the keys are hidden from everybody
  hides_peak,  // every fifth key is hidden, and its scores are far above all others
};
enum class BiasPlan {
  none,
  dense,  // a function of query, key and head
  keys,   // one row for all queries, with -infinity and finite -10000 in it
};
enum class SinkPlan { none, near, above, below };

struct Recipe {
  std::string name;
  const InputFamily* family = nullptr;
  std::string_view semantics;  // name of the entry of semantics()
  std::int64_t batches = 1, heads = 2, kv_heads = 2, queries = 33, keys = 33;
  std::int64_t head_dim = 16, value_dim = 16;
  DType dtype = DType::bf16;
  Spec spec;  // layout, scale, causal, window, softcap, empty_row
  RowPlan rows = RowPlan::plain;
  MaskPlan mask = MaskPlan::none;
  BiasPlan bias = BiasPlan::none;
  SinkPlan sinks = SinkPlan::none;
  bool alibi = false, alibi_per_batch = false;
  bool factors = false;   // dequantisation factors in every granularity
  bool gradients = true;  // dout and dlse are part of the case
};

/// What the answer is, apart from the numbers: a mask, an addition to the score, a grouping.
struct Semantics {
  std::string_view name;
  void (*apply)(Recipe&);  // sets what differs from plain attention; sizes may depend on keys
};
/// All of them, in the order of the notes.
std::span<const Semantics> semantics();
/// Precondition: there is one of this name.
const Semantics& semantics(std::string_view name);

}  // namespace ringproof::oracle
