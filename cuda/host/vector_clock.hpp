// Vector clocks: one counter for each worker (a rank's host code, a stream). What a worker did by
// its tick t is ordered before everything whose clock shows at least t for that worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringproof::cuda_host {

using Worker = std::uint32_t;

class VectorClock {
 public:
  std::uint32_t at(Worker worker) const { return worker < ticks_.size() ? ticks_[worker] : 0; }

  std::uint32_t tick(Worker worker) {
    if (worker >= ticks_.size()) ticks_.resize(worker + 1, 0);
    return ++ticks_[worker];
  }

  /// Afterwards everything before `other` is before this.
  void join(const VectorClock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size(), 0);
    for (std::size_t n = 0; n < other.ticks_.size(); ++n) {
      ticks_[n] = std::max(ticks_[n], other.ticks_[n]);
    }
  }

 private:
  std::vector<std::uint32_t> ticks_;
};

}  // namespace ringproof::cuda_host
