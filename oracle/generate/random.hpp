// The generator of every drawn number: the same bits on every machine and with every compiler.
// SplitMix64 in integer arithmetic; numbers are sums of integers scaled by powers of two, so that
// no mathematical library, no rounding mode and no order of evaluation has a say. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringproof::oracle {

/// One stream of numbers. Streams of different names are unrelated, so a tensor that is added to a
/// case changes no other tensor.
class Random {
 public:
  /// FNV-1a of the name, mixed with the seed.
  Random(std::uint64_t seed, std::string_view stream) : state_(seed) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : stream) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    state_ = bits() ^ hash;
    state_ = bits();
  }

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  /// Uniform in 0 .. count - 1, count >= 1; draws that would favour small numbers are thrown away.
  std::int64_t below(std::int64_t count) {
    const auto bound = static_cast<std::uint64_t>(count);
    const std::uint64_t unfair = (0 - bound) % bound;
    std::uint64_t draw = bits();
    while (draw < unfair) draw = bits();
    return static_cast<std::int64_t>(draw % bound);
  }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Nearly normal with mean 0 and variance 1 - 2^-32: the sum of twelve uniform 16-bit numbers
  /// about its mean, a multiple of 2^-16 within (-6, 6).
  double normal() {
    std::int64_t sum = -12 * 65535 / 2;
    for (int word = 0; word < 3; ++word) {
      for (std::uint64_t rest = bits(), part = 0; part < 4; ++part, rest >>= 16) {
        sum += static_cast<std::int64_t>(rest & 0xffff);
      }
    }
    return static_cast<double>(sum) * 0x1p-16;
  }

  /// -1 or 1.
  double sign() { return (bits() >> 63) != 0 ? 1 : -1; }

 private:
  std::uint64_t state_;
};

}  // namespace ringproof::oracle
