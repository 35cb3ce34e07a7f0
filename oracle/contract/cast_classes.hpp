// Which casts of one row of P may round alike: (38), (39) of docs/contract.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <vector>

#include "oracle/contract/row_keys.hpp"

namespace ringproof::oracle {

/// RN(w) / w - 1 for the cast's significand.
inline double cast_error(double w, double u) {
  if (!(w > 0) || u == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(w, &exponent);  // in [1/2, 1)
  const double steps = 1 / u;                        // 2^digits
  return std::nearbyint(fraction * steps) / steps / fraction - 1;
}

/// Keys whose weights may have the same significand share their cast's error: class[j]. (39)
class CastClasses {
 public:
  void find(const RowKeys& keys, double more, double max_score) {
    const auto count = static_cast<std::size_t>(keys.visible);
    phase_.resize(count);
    order_.resize(count);
    class_.resize(count);
    for (std::size_t j = 0; j < count; ++j) {
      const double octaves = (keys.score[j] - max_score) / std::numbers::ln2;
      phase_[j] = octaves - std::floor(octaves);
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return phase_[a] < phase_[b]; });
    const auto near = [&](std::size_t a, std::size_t b, double distance) {
      return distance <= 2 * (keys.common[a] + keys.common[b] + 2 * more);
    };
    classes_ = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t j = order_[n];
      if (n > 0 && !near(j, order_[n - 1], phase_[j] - phase_[order_[n - 1]])) ++classes_;
      class_[j] = classes_;
    }
    if (count == 0) return;
    ++classes_;
    // Just below a power of two and just above it: the phases meet at their ends.
    const std::size_t first = order_.front(), last = order_.back();
    if (classes_ > 1 && near(first, last, phase_[first] + 1 - phase_[last])) {
      for (std::size_t& one : class_) one = one == classes_ - 1 ? 0 : one;
    }
  }

  /// Sum over the classes of the squared sum of |h_j|.
  template <class Coefficient>
  double variance(const Coefficient& h) const {
    sums_.assign(classes_, 0.0);
    for (std::size_t j = 0; j < class_.size(); ++j) sums_[class_[j]] += std::fabs(h(j));
    double total = 0;
    for (const double sum : sums_) total += sum * sum;
    return total;
  }

 private:
  std::vector<double> phase_;
  mutable std::vector<double> sums_;  // memory of variance()
  std::vector<std::size_t> order_, class_;
  std::size_t classes_ = 0;
};

}  // namespace ringproof::oracle
