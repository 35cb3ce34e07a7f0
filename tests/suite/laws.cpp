// The list of laws, and what several themes share (law.hpp).
#include "tests/suite/law.hpp"

#include <random>
#include <utility>

namespace ringproof::suite {

const std::vector<Law>& all_laws() {
  static const std::vector<Law> laws = [] {
    std::vector<Law> all;
    for (const std::span<const Law> theme :
         {semantics_laws(), softmax_laws(), value_laws(), mask_laws(), kernel_laws(), size_laws(),
          ring_laws(), serving_laws(), gradient_laws()}) {
      all.insert(all.end(), theme.begin(), theme.end());
    }
    return all;
  }();
  return laws;
}

void plain(Description& d) {
  d.window_left = d.window_right = -1;
  d.causal = d.lengths = d.mask = d.rows = d.bias = d.alibi = d.softcap = d.sinks = d.scale =
      d.empty = 0;
}

std::vector<Index> shuffled(Index count, std::uint32_t seed) {
  std::vector<Index> order = ascending(count);
  std::mt19937_64 random(seed);
  for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random() % n]);
  return order;
}

}  // namespace ringproof::suite
