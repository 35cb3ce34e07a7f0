// Random case files over everything a case may say about the forward pass: types, axis orders,
// broadcasting, masks, positions, documents, factors. A description holds integers only, so that
// RapidCheck can draw, print and shrink it; write_case_file() draws the tensors from its seed.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>

namespace ringproof::test {

struct CaseDescription {
  std::int64_t batches = 1, kv_heads = 1, group = 1, queries = 1, keys = 1;
  std::int64_t head_dim = 1, value_dim = 1;
  int q_type = 1, kv_type = 0;  // of write_case_file's lists
  int layout = 0;               // bhnd, bnhd, nhd
  int causal = 0;               // none, top_left, bottom_right
  int window_left = -1, window_right = -1;
  int scale = 0, softcap = 0;  // absent, dyadic, not dyadic
  int bias = 0, mask = 0;      // none, [Nk], [Nq, Nk], [H, 1, Nk], [B, H, Nq, Nk]
  int alibi = 0;               // none, [H], [B, H]
  bool sinks = false, key_lengths = false;
  int rows = 0;       // plain, cu_seqlens, documents, positions [N], positions [B, N]
  int factors = 0;    // none, per tensor, per head and token, in blocks
  int empty_row = 0;  // zero, nan, any
  int upstream = 0;   // none, dout, dlse, both; not drawn
  unsigned seed = 0;
};

std::ostream& operator<<(std::ostream&, const CaseDescription&);

/// Writes the case, without answers. Padding behind key_lengths is NaN where the type has one.
void write_case_file(const CaseDescription&, const std::string& path);

}  // namespace ringproof::test

namespace rc {
template <>
struct Arbitrary<ringproof::test::CaseDescription> {
  static Gen<ringproof::test::CaseDescription> arbitrary();
};
}  // namespace rc
