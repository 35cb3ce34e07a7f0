// The truth of the backward pass: the exact gradients of sum(out dout) + sum(lse dlse), with a
// certified radius (docs/backward_truth.md). Twice, like the forward pass: double-double for every
// row, intervals where that does not decide.
//
//   HeadTruth forward(problem, b, kv_head, Precision::fast);
//   HeadGradients backward(problem, upstream, forward);
//   GradientSums sums(problem);              // one for each group of consecutive rows
//   backward.rows(ids, rows, gradients, &sums);
//   for (each gradients[n] with `failed`) interval_row_gradients(..., 128, rows[n], gradients[n],
//                                                                &sums);
//   all.merge(sums);                         // in the order of the groups
//
// Everything of a row is complete at once (dq, its addends of dsinks and dbias); dk and dv are sums
// over all rows of all heads that read the KV head.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// Isolated mode: the kernel's own outputs are exact inputs of the backward pass, so that
/// P_ij = exp(s_ij - lse_i) and D_i = dout_i . out_i. Both absent: end to end.
struct GivenForward {
  Tensor out;                 // [B, H, Nq, Dv]
  Tensor lse;                 // [B, H, Nq, 1]
  LseBase base = LseBase::e;  // of lse
  bool isolated() const { return static_cast<bool>(lse); }
};

struct Upstream {
  Tensor dout;  // [B, H, Nq, Dv]; absent: zeros
  Tensor dlse;  // [B, H, Nq, 1]; absent: zeros; of the natural logarithm, whatever lse_base says
  GivenForward given;
};

/// The backward pass of one row, beside the RowTruth of the same row, whose `keys` the arrays
/// "[keys]" cover; 0 at invisible keys. Where nothing is visible they are zeros.
struct RowGradients {
  std::string not_applicable;  // the forward row's reason, or what upstream is not finite; then
                               // nothing below holds, and GradientSums marks the keys it sees
  bool failed = false;         // double-double, or intervals of so few digits, cannot certify the
                               // row: nothing below holds, and the sums hold nothing of it;
                               // interval_row_gradients completes it, with enough digits
  double dlse = 0;             // dL_i
  double D = 0, D_radius = 0;  // D_i = dO_i . o_i
  std::vector<double> dout;    // [Dv] dO_i
  std::vector<double> q;       // [D] the query, dequantised
  double lse_given = 0;        // isolated: the L_i in use, natural logarithm, rounded
  std::vector<double> p;       // [keys] isolated: exp(s_ij - L_i given), relative error <= 2^-40
                               // where >= 2^-990; empty end to end: RowTruth::p
  double p_sink = 0;           // the sink's, isolated or not

  std::vector<double> dp;        // [keys] dP_ij = dO_i . v_j
  std::vector<double> abs_dp;    // [keys] upper bound of sum_c |dO_ic v_jc|
  double dp_radius = 0;          // |dp[j] - dP_ij| <= dp_radius + 2^-53 |dp[j]|
  std::vector<double> factor;    // [keys] f_ij, derivative of the softcap; empty without one
  std::vector<double> ds;        // [keys] dS_ij = p_ij (dP_ij - D_i + dL_i) f_ij
  double ds_radius = 0;          // |ds[j] - dS_ij| <= ds_radius + 2^-53 |ds[j]|
  std::vector<Certified> dbias;  // [keys] p_ij (dP_ij - D_i + dL_i): this row's addend; empty
                                 // without a bias
  std::vector<Certified> dq;     // [D]
  Certified dsink;               // this row's addend of dsinks: -p_sink (D_i - dL_i); 0 without one
};

/// A sum of certified numbers, itself certified: for dsinks, and dbias over broadcast axes.
class CertifiedSum {
 public:
  void add(const Certified&);
  void merge(const CertifiedSum& later) { add(later.value()); }
  Certified value() const { return sum_; }

 private:
  Certified sum_;
};

/// dk and dv of the keys of one KV head, as sums over the rows added so far. The order of additions
/// decides the last bits of hi and lo (never whether the exact value lies inside): a caller that
/// wants the same bits for any number of threads fixes which rows go together, and merges in order.
class GradientSums {
 public:
  /// All keys, or those with wanted[j] != 0: the memory is (D + Dv) * 24 bytes a key.
  explicit GradientSums(const Problem&, std::span<const std::uint8_t> wanted = {});  // [Nk]
  ~GradientSums();
  GradientSums(GradientSums&&) noexcept;
  GradientSums& operator=(GradientSums&&) noexcept;

  /// Adds the sums of rows that come later. Both hold the same keys.
  void merge(const GradientSums& later);

  bool wanted(std::int64_t j) const;
  /// A row that is not applicable sees key j, so neither are dk and dv of it.
  bool not_applicable(std::int64_t j) const;
  /// Some row sees key j. If none does, dk and dv are exactly 0.
  bool seen(std::int64_t j) const;
  Certified dk(std::int64_t j, std::int64_t d) const;
  Certified dv(std::int64_t j, std::int64_t c) const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Keys and values of one KV head laid out for the backward pass; const afterwards and shared by
/// threads. Problem, Upstream and HeadTruth must outlive it.
class HeadGradients {
 public:
  HeadGradients(const Problem&, const Upstream&, const HeadTruth&);
  ~HeadGradients();
  HeadGradients(HeadGradients&&) noexcept;

  /// Forward and backward pass of up to HeadTruth::kRows rows: `rows` as HeadTruth::rows leaves
  /// them. `sums` may be null: then dk and dv are left out. Thread-safe, if no two threads share
  /// `sums`.
  void rows(std::span<const HeadTruth::RowId> ids, RowTruth* rows, RowGradients* gradients,
            GradientSums* sums) const;

  /// Decoded keys: row j is keys() + j * keys_stride(), D columns; 0 where no query can see them.
  /// The values are those of HeadTruth.
  const double* keys() const;
  std::int64_t keys_stride() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The same row from interval arithmetic of `bits` binary digits, forward part included. `sums` not
/// null: adds the row's share of dk and dv, for a row that `failed`.
void interval_row_gradients(const Problem&, const Upstream&, std::int64_t b, std::int64_t h,
                            std::int64_t i, unsigned bits, RowTruth& row, RowGradients& gradients,
                            GradientSums* sums);

/// dk and dv of one key.
struct KeyGradients {
  std::string not_applicable;
  std::vector<Certified> dk;  // [D]
  std::vector<Certified> dv;  // [Dv]
};
/// dk and dv of some keys from interval arithmetic of `bits` binary digits. Visits every row of
/// every head that reads the KV head once, whatever the number of keys: ask for all undecided keys
/// in one call.
std::vector<KeyGradients> interval_key_gradients(const Problem&, const Upstream&, std::int64_t b,
                                                 std::int64_t kv_head,
                                                 std::span<const std::int64_t> keys, unsigned bits);

}  // namespace ringproof::oracle
