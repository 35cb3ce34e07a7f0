// The truth: what exact attention gives on the stored numbers, with a certified radius.
// Twice: a fast double-double path with a proven radius (docs/double_double.md), and one short
// dense softmax on intervals (dense_softmax.hpp on mpfi_float) to which a row escalates until it is
// decided.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// The exact value lies in [hi + lo - radius, hi + lo + radius]; |lo| <= ulp(hi)/2.
struct Certified {
  double hi = 0, lo = 0, radius = 0;
};

enum class Precision { fast, tight };

/// One query row: its exact answer, and the quantities from which the contract derives its bound.
/// Arrays "[keys]" cover the keys of `keys` in order; an invisible key has score -infinity, log_p
/// -infinity, p 0 and 0 elsewhere. Natural-log units. A sink is not in the arrays.
struct RowTruth {
  std::int64_t b = 0, h = 0, i = 0;
  KeyRange keys;
  std::int64_t visible = 0;    // visible keys, the sink not counted
  std::string not_applicable;  // reason, if a visible input is not finite; then nothing below holds
  bool has_sink = false;
  double sink = 0;

  std::vector<double> dot;          // [keys] scale * q.k, before softcap and bias
  std::vector<double> abs_dot;      // [keys] upper bound of |scale| * sum_t |q_t k_t|
  std::vector<double> capped;       // [keys] after the softcap; empty without one
  std::vector<double> bias, alibi;  // [keys] the two additions; each empty without it
  std::vector<double> score;        // [keys] the final score s_j
  double score_radius =
      0;  // |score[j] - s_j| <= score_radius + 2^-53 |score[j]| for every visible key
  std::vector<double> log_p, p;  // [keys] s_j - L and its exponential; relative error of p <= 2^-40
                                 // where p >= 2^-990, below that only p < 2^-989 is promised
  double log_p_sink = 0;         // the same for the sink

  double max_score = 0;        // M over keys and sink
  Certified lse;               // L, natural logarithm
  std::vector<Certified> out;  // [Dv]
  bool empty() const { return visible == 0 && !has_sink; }
};

/// Keys and values of one KV head, decoded and laid out once; const afterwards and shared by
/// threads. Values at places no judged query sees are replaced by 0 if they are not finite.
class HeadTruth {
 public:
  /// Throws BadInput beyond the sizes for which the radius is proved: D and Dv at most 2^19, 2^26
  /// keys.
  HeadTruth(const Problem&, std::int64_t b, std::int64_t kv_head, Precision);
  ~HeadTruth();
  HeadTruth(HeadTruth&&) noexcept;

  /// Rows one call may compute together.
  static constexpr int kRows = 16;
  struct RowId {
    std::int64_t h, i;
  };
  /// Up to kRows rows whose heads read this KV head. A row whose radius is infinite must go to
  /// interval_row. Thread-safe; the vectors of `out` are reused.
  void rows(std::span<const RowId> ids, RowTruth* out) const;

  /// Decoded values: row j is values() + j * values_stride(), Dv columns; what lies behind them is
  /// finite and belongs to the kernels.
  const double* values() const;
  std::int64_t values_stride() const;

  std::int64_t batch() const;
  std::int64_t kv_head() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The same row from interval arithmetic of `bits` binary digits: replaces `lse` and `out` of `row`
/// (and fills everything else if `row` was never computed). Slow, rigorous, for any input type.
void interval_row(const Problem&, std::int64_t b, std::int64_t h, std::int64_t i, unsigned bits,
                  RowTruth& row);

/// Throws std::runtime_error if this process cannot certify: rounding mode not to nearest, flush to
/// zero, denormals are zero, or a compiler that reassociates. Called once before judging.
void arithmetic_self_test();

/// Name of the SIMD target in use ("AVX2", ...), and a way for tests to force one by name.
std::string simd_target();
std::vector<std::string> simd_targets();
void force_simd_target(const std::string& name);  // "" restores the default

}  // namespace ringproof::oracle
