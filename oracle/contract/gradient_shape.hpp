// How gradients are summed: which rows of a KV head see a key, how often partial sums of dk, dv, dq
// are added and stored on the way, and the log budgets that follow: Gg, A_k, A_q, Ng of
// docs/contract.md, (29)-(33). Known from the masks alone, before any row is looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/contract/accumulator.hpp"

namespace ringproof::oracle {

/// What a sum of gradients may lose: a log budget and a number of underflows.
struct GradientSum {
  double budget = 0;     // Gamma_g, travelling and stored sums
  double underflow = 0;  // Ng without its factor e^A
};

/// dq of one row, whose visible keys are `terms`. (32)
GradientSum query_gradient_sum(const Contract&, const Problem&, const Terms& terms);
/// dk and dv of one key, whose visible rows are `terms`. (30), (31)
GradientSum key_gradient_sum(const Contract&, const Problem&, const Terms& terms);
/// dsinks of one head: all its rows of all batches. (33)
GradientSum sink_gradient_sum(const Contract&, const Problem&);
/// dbias of one element: the rows, heads and batches over which the bias is broadcast, each of them
/// with `at_one_place` pairs where a kernel stores several at one place.
GradientSum bias_gradient_sum(const Contract&, const Problem&, std::int64_t at_one_place = 1);
/// Budget of the scale product, its constant, and the stores around it. (31), (32)
double scale_budget(const Contract&);
/// Omega of sums of gradients and of the types they are stored in on the way.
double largest_gradient_sum(const Contract&);
/// Underflow of a gradient, or of dS, that is stored before its last rounding.
double stored_gradient_underflow(const Contract&);

/// The keys of one KV head and the budgets of their sums; const afterwards, shared by threads.
class GradientShape {
 public:
  /// All keys, or those with wanted[j] != 0.
  GradientShape(const Contract&, const Problem&, std::int64_t b, std::int64_t kv_head,
                std::span<const std::uint8_t> wanted = {});  // [Nk]

  std::int64_t keys() const { return static_cast<std::int64_t>(place_.size()); }
  std::int64_t wanted() const { return static_cast<std::int64_t>(underflow_.size()); }
  /// Place of key j among the wanted ones; -1 for another.
  std::int64_t place(std::int64_t j) const { return place_[static_cast<std::size_t>(j)]; }
  /// Of key j: Gg + hat(u_doin), its expm1, and expm1(A_k); 0 for a key that is not wanted. [Nk]
  const double* budget_upstream() const { return budget_upstream_.data(); }
  const double* relative_upstream() const { return relative_upstream_.data(); }
  const double* relative_query() const { return relative_query_.data(); }
  /// Ng of a wanted key without its factor e^A.
  double underflow(std::int64_t place) const { return underflow_[static_cast<std::size_t>(place)]; }
  std::int64_t head_dim = 0, value_dim = 0;
  double scale_or_one = 1;    // max(1, |sigma|)
  double underflow_unit = 0;  // eta_g
  double largest_sum = 0;     // Omega of the sums and their stores

 private:
  std::vector<std::int64_t> place_;                                           // [Nk]
  std::vector<double> budget_upstream_, relative_upstream_, relative_query_;  // [Nk]
  std::vector<double> underflow_;                                             // [wanted]
};

}  // namespace ringproof::oracle
