// The derived tolerance of the gradients under a contract: theorem T2, (27)-(34) of
// docs/contract.md. dq, dsinks and dbias are finished row by row; dk and dv add up what all rows of
// a KV head contribute and are finished key by key. Not here: what the exact gradients are
// (oracle/truth/backward.hpp), and whether an answer is accepted (oracle/judge).
//
//   GradientShape shape(contract, problem, b, kv_head);
//   GradientBoundSums sums(shape);               // one for each group of consecutive rows
//   for (each row of the group)
//     bound_row_backward(contract, problem, given, head, row, gradients, bound, &sums);
//   all.merge(sums);                             // in the order of the groups
//   all.finish();                                // then all.dk(j, d), all.dv(j, c)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/contract/gradient_shape.hpp"
#include "oracle/contract/weight_loops.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

/// Keys and values of one KV head as the truth decodes them (HeadGradients::keys,
/// HeadTruth::values), and ranges over all of them.
struct BackwardHead {
  const double* keys;  // [Nk, D], rows keys_stride apart
  std::int64_t keys_stride;
  const double* values;  // [Nk, Dv], rows values_stride apart
  std::int64_t values_stride;
  ColumnRange range;       // [Dv] of the values of all keys, which no row exceeds
  double largest_key = 0;  // max |k|

  BackwardHead(const Problem&, const double* keys, std::int64_t keys_stride, const double* values,
               std::int64_t values_stride);
};

/// Bounds of what one row finishes; numbers, or infinity where nothing is known.
struct RowGradientBound {
  std::string
      not_applicable;         // the assumption that fails on this row (H1); then nothing is bounded
  std::vector<double> dq;     // [D] (32)
  std::vector<double> dbias;  // [keys] of the row's key range; bounds of a broadcast bias add up
  double dsink = 0;           // this row's addend of (33)
};

/// How large the numbers of one row may be when a kernel of the contract rounds them, and what
/// rounding the exact ones would do: the coefficients of (41). [keys] each, 0 at invisible keys.
struct RowMagnitudes {
  std::vector<double> score_gradient;  // |dS| before its cast
  std::vector<double> probability;     // P before its cast
  std::vector<double> weight;          // P f, which D is multiplied by
  double after_query = 0;              // expm1(A_q)
  // What the casts of P and the roundings of out may do to D, as a norm, and what the casts of the
  // exact weights do. 0 in isolated mode.
  double delta_norm = 0, delta_drift = 0;
};

struct RowGradientParts;  // gradient_parts.hpp

/// Bounds of dk and dv of one KV head, as sums over the rows added so far.
class GradientBoundSums {
 public:
  /// The shape must outlive the sums; keys that it leaves out are left out here.
  explicit GradientBoundSums(const GradientShape&);

  /// Adds the sums of rows that come later.
  void merge(GradientBoundSums& later);
  /// All rows are in: applies what belongs to a key as a whole.
  void finish();

  double dk(std::int64_t j, std::int64_t d) const;
  double dv(std::int64_t j, std::int64_t c) const;

  /// What one row adds, for its visible keys: factors of |q| and of |dO|, and how large dS and P
  /// may be.
  struct RowShare {
    std::int64_t first = 0, visible = 0;  // key index[k] + first
    const std::int64_t* index;            // [visible]
    const double* of_query;               // [visible] (31)
    const double* of_upstream;            // [visible] (30)
    const double* query_magnitude;        // [visible]
    const double* upstream_magnitude;     // [visible]
    const double* query;                  // [D]
    const double* upstream;               // [Dv]
  };
  void add(const RowShare&);
  const GradientShape& shape() const { return *shape_; }

 private:
  static constexpr std::int64_t kPending = 16;
  void flush();

  const GradientShape* shape_;
  std::vector<double> dk_, dv_;                      // [wanted, D], [wanted, Dv]
  std::vector<double> k_magnitude_, v_magnitude_;    // [wanted]
  double largest_query_ = 0, largest_upstream_ = 0;  // over the rows
  std::vector<char> unbounded_;                      // [wanted]
  // Rows are added several at a time, so that the sums pass through the cache less often.
  std::int64_t pending_ = 0;
  std::vector<double> weights_k_, weights_v_;  // [wanted, kPending]
  std::vector<double> query_, upstream_;       // [kPending, D], [kPending, Dv], absolute values
};

/// Bounds of one row's gradients, joined to `sums` unless null. `given`: isolated mode (34). An
/// empty row has bounds 0. `magnitudes` are filled unless null; zeros where nothing is bounded.
/// `parts`: what the bounds were evaluated from, unless null.
/// Thread-safe, if no two threads share `sums`; no allocation once a thread has seen its longest
/// row.
void bound_row_backward(const Contract&, const Problem&, const GivenForward& given,
                        const BackwardHead&, const RowTruth&, const RowGradients&,
                        RowGradientBound& bound, GradientBoundSums* sums,
                        RowMagnitudes* magnitudes = nullptr, RowGradientParts* parts = nullptr);

}  // namespace ringproof::oracle
