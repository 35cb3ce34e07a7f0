// Random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace ringproof::oracle {

/// SplitMix64: one well-mixed number a call.
inline std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Uniform in [0, bound): the draws that would favour small numbers are thrown away.
inline std::uint64_t uniform_below(std::uint64_t bound, std::uint64_t& state) {
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t draw = next_random(state);
  while (draw < unfair) draw = next_random(state);
  return draw % bound;
}

}  // namespace ringproof::oracle
