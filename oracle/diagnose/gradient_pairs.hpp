// The backward pass of one KV head pair by pair: everything from which gradients, right or wrong,
// and their bounds are put together. Numbers are binary64; what only enters bounds is kept in
// binary32, rounded up. Not here: how they are put together (gradient_row.hpp, gradient_sums.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/assumptions.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/contract/gradient_parts.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// A query and a key that it sees.
struct PairOfHead {
  double p = 0;                   // 0: the query does not see the key
  double dp = 0;                  // dO . v
  float abs_dp = 0;               // sum |dO v|
  float in_ds = 0, in_query = 0;  // expm1 of Y and of Y'
  float in_value = 0;             // of XV + Lam' + GV
};
/// The softcap's derivative, and Ef.
struct DerivativeOfPair {
  double f = 1;
  float error = 0;
};
/// What the pairs of a query share.
struct RowOfHead {
  bool bounded = false;  // else the theorems know nothing of this row
  GradientBudget budget;
  double D = 0, dlse = 0;
  double lost_ds = 0, lost_dv = 0;  // g and gV
  double query_underflow = 0;       // N of dq
  SinkParts sink;
  OnesParts ones;
};

/// One query head of the group.
struct HeadPairs {
  std::int64_t h = 0;
  std::vector<PairOfHead> pairs{};              // [Nq, Nk]
  std::vector<DerivativeOfPair> derivatives{};  // [Nq, Nk]; empty without a softcap
  std::vector<RowOfHead> rows{};                // [Nq]
  std::vector<double> q{}, dout{};              // [Nq, D], [Nq, Dv]
};

/// What the sum of a key's gradients loses. (30), (31)
struct KeyOfHead {
  double budget_query = 0, budget_value = 0;  // A_k, GV
  double underflow = 0;                       // N
};

struct GradientPairs {
  std::int64_t b = 0, kv_head = 0, queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  double scale = 1;
  std::vector<HeadPairs> heads{};
  std::vector<double> k{}, v{};                      // [Nk, D], [Nk, Dv]
  std::vector<double> value_sum{}, value_abs_sum{};  // [Nk] over the columns of v
  std::vector<double> ones{};                        // [Dv] of them
  std::vector<KeyOfHead> key{};                      // [Nk]
  GradientLimits limits{};
  double largest_key = 0, largest_query = 0, largest_upstream = 0;
  double sum_underflow = 0;  // eta_g
  // Log budgets: of a product, of an addition of sums with its store, of the cast of P; and expm1
  // of two roundings of the exponential's argument.
  double product_hat = 0, addition_hat = 0, cast_hat = 0, argument_growth = 0;
  double output_unit = 0, output_underflow = 0;  // of gradients as they are stored
  std::string not_evaluated{};                   // why there are no pairs, or empty
};

/// Pairs beyond this number are not held in memory.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

GradientPairs gradient_pairs(const Case&, const Contract&, std::int64_t b, std::int64_t kv_head);

/// Collects the pairs of one KV head row by row, in the order of the query heads and their rows.
class PairCollector {
 public:
  PairCollector(const Problem&, const Contract&, const GivenForward&, const BackwardHead&,
                std::int64_t b, std::int64_t kv_head);
  /// False where the theorems do not apply to the row.
  bool add(const RowTruth&, const RowGradients&);
  GradientPairs take() { return std::move(pairs_); }

 private:
  void add_pair(HeadPairs&, const RowTruth&, const RowGradients&, std::size_t visible);

  const Problem& problem_;
  const Contract& contract_;
  const GivenForward& given_;
  const BackwardHead& head_;
  GradientShape shape_;
  ValueSums values_;
  GradientPairs pairs_;
  RowGradientBound bound_;
  RowGradientParts parts_;
};

}  // namespace ringproof::oracle
