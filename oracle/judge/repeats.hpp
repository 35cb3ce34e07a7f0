// Rows of q and k that occur more than once: what a kernel computes from them is the same, so that
// its roundings are not independent. The probabilistic level counts them together, (41).
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// How many rows of the whole tensor hold the same numbers as this one; at least 1, and rarely more
/// than there are.
class Repeats {
 public:
  explicit Repeats(const Tensor& tensor);  // [B, H, N, D]
  double of(std::int64_t b, std::int64_t h, std::int64_t n) const {
    return count_[static_cast<std::size_t>((b * heads_ + h) * rows_ + n)];
  }

 private:
  std::int64_t heads_, rows_;
  std::vector<double> count_;
};

}  // namespace ringproof::oracle
