// Narrow numbers and threads (simd_data.hpp).
#include "mpi/simd_data.hpp"

#include <atomic>
#include <bit>
#include <thread>

namespace ringproof::mpi {

std::uint16_t narrow(Sixteen type, float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (type == Sixteen::bf16) return static_cast<std::uint16_t>(bits >> 16);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  if (!std::isfinite(number)) {
    return static_cast<std::uint16_t>(sign | 0x7c00u | (std::isnan(number) ? 0x200u : 0u));
  }
  // The inverse of what widening does: 112 out of the exponent, subnormal numbers included.
  const auto digits = std::bit_cast<std::uint32_t>(std::abs(number) * 0x1p-112f);
  return static_cast<std::uint16_t>(sign | digits >> 13);
}

void for_all(Index count, int threads, const std::function<void(Index, int)>& body) {
  std::atomic<Index> next{0};
  const auto work = [&](int thread) {
    for (Index n = next++; n < count; n = next++) body(n, thread);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads && thread < count; ++thread)
    others.emplace_back(work, thread);
  work(0);
}

}  // namespace ringproof::mpi
