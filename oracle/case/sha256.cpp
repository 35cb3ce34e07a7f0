// SHA-256 after FIPS 180-4: sections 4.1.2 (functions), 5.1.1 (padding), 6.2.2 (compression).
// The constants are the standard's: fractional parts of square and cube roots of the first primes,
// computed here in integers so that no table has to be trusted.
#include "oracle/case/sha256.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ringproof::oracle {
namespace {

using Word = std::uint32_t;
using State = std::array<Word, 8>;
__extension__ using Wide = unsigned __int128;

constexpr std::array<Word, 64> first_primes() {
  std::array<Word, 64> primes{};
  std::size_t count = 0;
  for (Word candidate = 2; count < primes.size(); ++candidate) {
    bool prime = true;
    for (std::size_t n = 0; n < count && prime; ++n) prime = candidate % primes[n] != 0;
    if (prime) primes[count++] = candidate;
  }
  return primes;
}

/// First 32 fractional bits of the square (power 2) or cube (power 3) root of a prime:
/// the low word of the largest x with x^power <= prime * 2^(32 power).
constexpr Word root_fraction(Word prime, int power) {
  const Wide target = static_cast<Wide>(prime) << (32 * power);
  Wide root = 0;
  for (int bit = 37; bit >= 0; --bit) {  // 311^(1/2) < 2^5
    const Wide trial = root | (static_cast<Wide>(1) << bit);
    if (power == 2 ? trial * trial <= target : trial * trial * trial <= target) root = trial;
  }
  return static_cast<Word>(root);
}

template <std::size_t count>
constexpr std::array<Word, count> root_fractions(int power) {
  const auto primes = first_primes();
  std::array<Word, count> words{};
  for (std::size_t n = 0; n < count; ++n) words[n] = root_fraction(primes[n], power);
  return words;
}
constexpr State kInitial = root_fractions<8>(2);
constexpr std::array<Word, 64> kRound = root_fractions<64>(3);

Word big_endian(const unsigned char* bytes) {
  return static_cast<Word>(bytes[0]) << 24 | static_cast<Word>(bytes[1]) << 16 |
         static_cast<Word>(bytes[2]) << 8 | static_cast<Word>(bytes[3]);
}

void compress(State& state, const unsigned char* block) {
  std::array<Word, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const Word s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const Word s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const Word sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const Word t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const Word sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const Word t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State mixed{a, b, c, d, e, f, g, h};
  for (std::size_t n = 0; n < 8; ++n) state[n] += mixed[n];
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  State state = kInitial;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t whole = bytes.size() / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64) compress(state, data + at);

  // The rest, a one bit, zeros, and the length in bits, in one or two blocks.
  std::array<unsigned char, 128> tail{};
  const std::size_t rest = bytes.size() - whole;
  if (rest > 0) std::memcpy(tail.data(), data + whole, rest);
  tail[rest] = 0x80;
  const std::size_t used = rest < 56 ? 64 : 128;
  const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (std::size_t n = 0; n < 8; ++n) {
    tail[used - 1 - n] = static_cast<unsigned char>(bits >> (8 * n));
  }
  for (std::size_t at = 0; at < used; at += 64) compress(state, tail.data() + at);

  std::string hex;
  for (const Word word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(word >> shift) & 15];
  }
  return hex;
}

std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace ringproof::oracle
