// The visible keys of one row as arrays, and the budgets that belong to them: memory that one
// thread reuses from row to row. Arrays are padded so that vector loops need no tail; behind
// `count` a key weighs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

constexpr std::int64_t kPadding = 16;  // at least the lanes of any vector
constexpr double kNoWeight = -1e4;     // log p of the padding

/// Grows, never shrinks: no allocation once the longest row has been seen.
inline void fit(std::vector<double>& array, std::int64_t size) {
  if (static_cast<std::int64_t>(array.size()) < size) {
    array.resize(static_cast<std::size_t>(size));
  }
}

/// The visible keys in key order, and behind them the sink if there is one: a key with v = 0.
struct RowKeys {
  std::int64_t visible = 0, count = 0, padded = 0;
  bool has_sink = false, has_softcap = false, has_bias = false, has_alibi = false;
  std::vector<std::int64_t> index;          // [visible] place in the row's key range
  std::vector<double> dot, abs_dot;         // [visible]
  std::vector<double> capped, bias, alibi;  // [visible], each only if present
  std::vector<double> score, log_p, p;      // [padded]
  std::vector<double> error;                // eps_j, (4)-(6)
  std::vector<double> common;               // C_j of (10) without its terms in n_al
  std::vector<double> common_lse;           // CL_j of (11), likewise
  std::vector<double> cast;                 // (12); 0 where the cast is in C_j
  std::vector<double> reach;                // y of (12) while the casts are computed

  void gather(const RowTruth& row);
};

}  // namespace ringproof::oracle
