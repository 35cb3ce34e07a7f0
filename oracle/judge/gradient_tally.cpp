#include "oracle/judge/gradient_tally.hpp"

#include <algorithm>

namespace ringproof::oracle {

void GradientTally::merge(const GradientTally& other) {
  for (std::size_t n = 0; n < tensors.size(); ++n) tensors[n].merge(other.tensors[n]);
  escalated_rows += other.escalated_rows;
  escalated_keys += other.escalated_keys;
  bits = std::max(bits, other.bits);
}

}  // namespace ringproof::oracle
