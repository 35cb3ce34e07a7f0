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
/// A weight's phase, its place between two powers of two, may be off by twice its budget: an arc on
/// the circle of all phases. Classes are what overlapping arcs join.
class CastClasses {
 public:
  void find(const RowKeys& keys, double more, double max_score) {
    const auto count = static_cast<std::size_t>(keys.visible);
    phase_.resize(count);
    reach_.resize(count);
    order_.resize(count);
    class_.resize(count);
    classes_ = 0;
    if (count == 0) return;
    double last_end = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const double octaves = (keys.score[j] - max_score) / std::numbers::ln2;
      phase_[j] = octaves - std::floor(octaves);
      reach_[j] = 2 * (keys.common[j] + more);
      last_end = std::max(last_end, phase_[j] + reach_[j]);
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return phase_[a] - reach_[a] < phase_[b] - reach_[b];
    });
    // The last arcs may reach beyond the circle's end, and there the first ones.
    const double first = phase_[order_.front()] - reach_[order_.front()];
    ends_.assign(1, last_end - 1);
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t j = order_[n];
      if (n > 0 && phase_[j] - reach_[j] > ends_.back()) ends_.push_back(0);
      ends_.back() = std::max(ends_.back(), phase_[j] + reach_[j]);
      class_[j] = ends_.size() - 1;
    }
    classes_ = ends_.size();
    for (std::size_t& one : class_) one = ends_[one] - 1 >= first ? 0 : one;
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
  std::vector<double> phase_, reach_;  // in octaves
  std::vector<double> ends_;           // of the classes
  mutable std::vector<double> sums_;   // memory of variance()
  std::vector<std::size_t> order_, class_;
  std::size_t classes_ = 0;
};

}  // namespace ringproof::oracle
