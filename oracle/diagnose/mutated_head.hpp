// One query head of a problem on its way to another mathematical function: which keys it reads,
// what it sees, what is added to its scores. Mistakes are small edits of a HeadChange; the changed
// problem is then judged by the same truth and contract as the problem itself.
//
//   HeadChange change(problem, b, h, rank);
//   change.scale = 1.0;                                   // the kernel forgot the scale
//   const MutatedHead head = build(change, {0, 5, 9});    // three of its query rows
//
// Not here: what a kernel does with the scores of a row (partial_rows.hpp), and the list of
// mistakes (classes_*.cpp).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// Where one key of a changed problem comes from.
struct KeySource {
  std::int64_t k = 0, v = 0;  // rows of K and V; kZeroKey: a row of zeros
  std::int64_t at = 0;        // the key whose place it takes: mask, bias, position
};
constexpr std::int64_t kZeroKey = -1;

struct HeadChange {
  struct Head {
    std::int64_t b = 0, head = 0;
  };

  /// The problem as it is. `rank` is the rank that owns the rows in question, 0 without ranks.
  HeadChange(const Problem&, std::int64_t b, std::int64_t h, std::int64_t rank);

  const Problem* problem;
  std::int64_t b, h, rank;
  Head q_from, k_from, v_from;  // k and v: KV heads
  std::vector<KeySource> keys;
  std::function<bool(std::int64_t i, std::int64_t j)> visible;  // of query i and place j
  std::function<double(std::int64_t i, std::int64_t j)> bias;   // empty: none
  std::optional<double> slope;                                  // ALiBi
  std::function<std::int64_t(std::int64_t i)> position_q;       // for ALiBi alone
  std::function<std::int64_t(std::int64_t j)> position_k;
  std::optional<double> sink;
  std::optional<double> scale;  // as in the spec: absent is the real number 1/sqrt(D)
  double softcap;
  std::int64_t channels;  // of q and k that enter the dot product: the first ones
  bool dequantise_q = true, dequantise_k = true, dequantise_v = true;

  double scale_value() const;
  /// Adds keys of score 0 that a query sees where `sees(i, j)` holds: masked scores that became 0.
  /// `extra_bias` is added to their scores.
  void add_zero_scores(std::function<bool(std::int64_t, std::int64_t)> sees, double extra_bias);
};

/// The rows of one head as a problem of their own: B = H = 1, numbers in binary64, the mask written
/// out. Numbers of V that are not finite are zeros there, and remembered.
struct MutatedHead {
  Problem problem;
  std::vector<std::vector<std::uint8_t>> poison;  // [keys][Dv] 1: not finite; empty: all are finite
  std::vector<double> q, k, v, bias, slope, sink;
  std::vector<std::byte> mask;

  /// True if a key that row n sees (or any key: a masked weight is still a factor) holds no number
  /// in this column of V.
  bool poisoned(std::int64_t n, std::int64_t column, bool also_masked) const;
};

MutatedHead build(const HeadChange&, const std::vector<std::int64_t>& queries);

}  // namespace ringproof::oracle
