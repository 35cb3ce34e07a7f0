// The sums behind the gradients of one KV head under a rule, and behind their bounds: (30) to (32)
// of docs/contract.md pair by pair. Not here: what a pair is (gradient_row.hpp), and where
// gradients are stored (gradient_mutant.hpp).
#pragma once

#include "oracle/diagnose/gradient_row.hpp"

namespace ringproof::oracle {

/// True if the rule puts one of dk and dv in the other's place, or adds it there.
inline bool adds_gradients(const GradientRule& rule) {
  return rule.dv_in_dk != 0 || rule.dk_in_dv != 0;
}

/// The sums behind the gradients of one KV head, and behind their bounds.
class WrongSums {
 public:
  WrongSums(const GradientPairs&, const GradientRule&);

  /// Pairs of query i of the n-th head with these keys; all: nullptr.
  void add_row(std::size_t n, std::int64_t i, const std::vector<std::int64_t>* keys);
  /// All rows are in: what belongs to a key as a whole. `keys` as for the rows.
  void finish(const std::vector<std::int64_t>* keys);

  WrongGradients sums{};

 private:
  /// What is known of a key's sums.
  struct Key {
    bool started = false, unbounded_k = false, unbounded_v = false;
    double relative_k = 0, relative_v = 0;    // expm1 of A_k and GV, with what the rule adds
    double extra_v = 0;                       // expm1 of what it adds to GV
    double magnitude_k = 0, magnitude_v = 0;  // of all terms
  };

  /// An underflow before the scale is made larger by scale and factor, never smaller.
  double underflow_factor(double factor) const;
  Key& key(std::int64_t j);
  void add_query(const RowOfPairs&, const WrongPair&, std::int64_t k_row, double weight);
  void add_key(const WrongPair&, const double* q, std::int64_t j, double weight);
  void add_value(const RowOfPairs&, const WrongPair&, std::int64_t j, double weight);
  void finish_query(const RowOfPairs&);
  void finish_key(std::int64_t j);

  const GradientPairs& pairs_;
  const GradientRule& rule_;
  const RuleBudgets budgets_;
  double sum_of_keys_, sum_of_rows_;  // what sums in binary64 may be off, relative to their terms
  double inflation_;                  // covers the evaluation of sums of terms of one sign
  double scale_q_, largest_factor_q_, largest_factor_k_;
  std::vector<Key> key_;  // [Nk]
  // Of the query that is added.
  double* dq_ = nullptr;
  double* bound_q_ = nullptr;
  std::vector<double> mean_key_;  // sum p f k
  double magnitude_q_ = 0;
  bool unbounded_q_ = false;
};

}  // namespace ringproof::oracle
