// The exact loss whose gradients kernels are asked for, and its finite differences. The judge takes
// gradients from the formulas of the backward pass; here they come from forward answers alone, so
// that a mistake in those formulas has a second witness.
#pragma once

#include <string>

#include "tests/suite/draft.hpp"

namespace ringproof::suite {

/// Contains a derivative.
struct Slope {
  double low = 0, high = 0;
};

/// L = sum(out dout) + sum(lse dlse) of the exact answer; rows that see nothing contribute zero.
class Loss {
 public:
  /// A draft with upstream gradients.
  explicit Loss(const Draft&);

  /// dL/dx for number n of a table ("q", "k", "v", "bias", "sinks"). Exact up to the next power of
  /// the step where numbers have no digits below 2^-16, so that a step is taken exactly.
  Slope slope(const std::string& table, std::size_t n);

 private:
  Draft draft_;
};

/// Drops the digits below 2^-16 of every number the loss depends on; types stay as they are.
void drop_low_digits(Draft&);

}  // namespace ringproof::suite
