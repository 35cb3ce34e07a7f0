#include "oracle/judge/repeats.hpp"

#include <bit>
#include <unordered_map>

namespace ringproof::oracle {

namespace {

/// Equal rows have equal digests; different ones that share a digest are only counted too often.
std::uint64_t digest(const Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t n) {
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
    const double x = tensor.at(b, h, n, d) + 0.0;  // -0 is 0
    state = (state ^ std::bit_cast<std::uint64_t>(x)) * 0xff51afd7ed558ccd;
    state ^= state >> 32;
  }
  return state;
}

}  // namespace

Repeats::Repeats(const Tensor& tensor) : heads_(tensor.shape[1]), rows_(tensor.shape[2]) {
  const std::int64_t all = tensor.shape[0] * heads_ * rows_;
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(all));
  std::unordered_map<std::uint64_t, double> counts;
  for (std::int64_t n = 0; n < all; ++n) {
    const std::uint64_t one = digest(tensor, n / rows_ / heads_, n / rows_ % heads_, n % rows_);
    digests[static_cast<std::size_t>(n)] = one;
    ++counts[one];
  }
  for (const std::uint64_t one : digests) count_.push_back(counts[one]);
}

}  // namespace ringproof::oracle
