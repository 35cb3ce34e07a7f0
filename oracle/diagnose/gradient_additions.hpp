// dbias and dsinks under a rule of what goes wrong: sums over batches, heads and queries, to which
// one KV head after the other adds, each addend with its bound: (29) and (33) of docs/contract.md
// with the numbers of the rule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/diagnose/gradient_row.hpp"
#include "oracle/judge/summed_rows.hpp"

namespace ringproof::oracle {

/// What the sum behind an element of dbias may lose.
struct BiasBudget {
  double budget = 0;     // Gb: stores, and the sum over what the bias is broadcast over
  double underflow = 0;  // of each addend
  double largest = 0;    // Omega of the sum and its stores
  BiasBudget(const Contract&, const Problem&, const GradientRule&);
};

/// Sums of one tensor: of all its elements, or of a single one.
class AdditionSums {
 public:
  /// `shape`: that of dbias, whose axes of size 1 are added up; dsinks has {1, H, 1, 1}.
  explicit AdditionSums(const BiasShape& shape, BiasBudget bias,
                        std::optional<std::int64_t> only = {});

  void add_bias(const GradientPairs&, const GradientRule&);
  void add_sinks(const GradientPairs&, const GradientRule&);

  /// Numbers of the first element and behind the last.
  std::int64_t first() const { return only_.value_or(0); }
  std::int64_t last() const { return only_ ? *only_ + 1 : count_; }
  double value(std::int64_t n) const { return value_[place(n)]; }
  double bound(std::int64_t n) const;
  static std::int64_t elements(const BiasShape& shape) {
    return shape[0] * shape[1] * shape[2] * shape[3];
  }
  static std::int64_t number(const BiasShape&, const PairPlace&);

 private:
  std::size_t place(std::int64_t n) const { return static_cast<std::size_t>(n - first()); }
  bool wanted(std::int64_t n) const { return !only_ || n == *only_; }
  void add(std::int64_t n, double weight, double relative, const Addend&);

  BiasShape shape_;
  BiasBudget bias_;
  std::optional<std::int64_t> only_;
  std::int64_t count_;
  std::vector<double> value_, bound_, absolute_;
  std::vector<std::int64_t> terms_;
};

}  // namespace ringproof::oracle
