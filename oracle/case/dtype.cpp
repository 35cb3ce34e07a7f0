// Storage types: names, rounding and encoding on the bit patterns (dtype.hpp; decode.cpp decodes).
// No floating-point operation here rounds, so nothing here depends on the floating-point
// environment.
#include "oracle/case/dtype.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "oracle/case/binary64.hpp"

namespace ringproof::oracle {
namespace {

constexpr std::array<std::string_view, 9> kNames{"F64",     "F32",  "F16", "BF16", "F8_E4M3",
                                                 "F8_E5M2", "BOOL", "I32", "I64"};

using namespace bits;

enum class Direction { nearest, away, toward_zero };

/// A magnitude as m * 2^e; precondition: finite.
struct Magnitude {
  std::uint64_t m;
  int e;
};
Magnitude magnitude(std::uint64_t bits) {
  const std::uint64_t fraction = bits & ((1ULL << 52) - 1);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  if (exponent == 0) return {fraction, -1074};
  return {fraction | (1ULL << 52), exponent - 1075};
}

/// Rounds a finite magnitude to `format` with unbounded exponent range upwards.
Magnitude round_magnitude(const Format& format, Magnitude value, Direction direction) {
  const int top = std::bit_width(value.m) - 1 + value.e;
  const int quantum = (top > format.min_exponent ? top : format.min_exponent) - (format.digits - 1);
  const int shift = quantum - value.e;
  if (value.m == 0 || shift <= 0) return value;
  const std::uint64_t kept = shift < 64 ? value.m >> shift : 0;
  const std::uint64_t rest = shift < 64 ? value.m & ((1ULL << shift) - 1) : value.m;
  if (rest == 0) return {kept, quantum};
  bool up = direction == Direction::away;
  if (direction == Direction::nearest && shift < 64) {
    const std::uint64_t half = 1ULL << (shift - 1);
    up = rest > half || (rest == half && (kept & 1) != 0);
  }
  return {kept + (up ? 1 : 0), quantum};
}

double round_to(DType type, double value, Direction direction) {
  const Format& format = format_of(type);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits & kSignBit;
  const std::uint64_t size = bits & ~kSignBit;
  if (size > kInfinity) return value;  // NaN
  const auto largest = std::bit_cast<std::uint64_t>(format.largest);
  std::uint64_t rounded = kInfinity;
  if (size < kInfinity) {
    const Magnitude result = round_magnitude(format, magnitude(size), direction);
    // Rounding up to 2^1024 composes to the pattern of infinity, which is what it should be.
    rounded = compose(result.m, result.e);
  } else if (format.has_infinity) {
    return value;
  }
  // Nonnegative binary64 numbers are ordered as their bit patterns are.
  if (rounded <= largest) return from_bits(sign | rounded);
  if (direction == Direction::toward_zero) return from_bits(sign | largest);
  if (direction == Direction::nearest && !format.has_infinity) return from_bits(sign | kQuietNaN);
  return from_bits(sign | kInfinity);
}

bool negative(double value) { return (std::bit_cast<std::uint64_t>(value) & kSignBit) != 0; }

/// Encoding of a number that the float type holds.
std::uint64_t code_of(DType type, double value) {
  const Format& format = format_of(type);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t size = bits & ~kSignBit;
  const int field = format.digits - 1;
  const std::uint64_t sign = (bits >> 63) << (8 * size_of(type) - 1);
  const std::uint64_t last = ((1ULL << exponent_bits(type, format)) - 1) << field;
  if (size > kInfinity) {  // quiet NaN: the top bit of the fraction; e4m3 has only all ones
    return sign | last | (format.has_infinity ? 1ULL << (field - 1) : (1ULL << field) - 1);
  }
  if (size == kInfinity) return sign | last;
  const auto [m, e] = magnitude(size);
  if (m == 0) return sign;
  const int lowest = format.min_exponent - field;  // exponent of the last digit of subnormals
  const int top = std::bit_width(m) - 1 + e;
  const int quantum = top > format.min_exponent ? top - field : lowest;
  const int shift = quantum - e;
  const std::uint64_t digits = shift >= 0 ? m >> shift : m << -shift;
  // A hidden bit carries into the exponent field by itself: normals start at exponent 1.
  return sign | (digits + (static_cast<std::uint64_t>(quantum - lowest) << field));
}

template <class Integer>
void store(std::byte* address, Integer value) {
  std::memcpy(address, &value, sizeof value);
}

}  // namespace

std::string_view name(DType type) { return kNames[static_cast<std::size_t>(type)]; }

bool parse_dtype(std::string_view text, DType& type) {
  for (std::size_t n = 0; n < kNames.size(); ++n) {
    if (kNames[n] != text) continue;
    type = static_cast<DType>(n);
    return true;
  }
  return false;
}

double Format::unit() const { return from_bits(compose(1, -digits)); }
double Format::smallest() const { return from_bits(compose(1, min_exponent - digits + 1)); }

const Format& format_of(DType type) {
  assert(is_float(type));
  return kFormats[static_cast<std::size_t>(type)];
}

void encode(DType type, double value, std::byte* address) {
  if (is_float(type)) {
    assert(std::isnan(value) || representable(type, value));
    const std::uint64_t code = code_of(type, value);
    switch (size_of(type)) {
      case 8:
        return store(address, code);
      case 4:
        return store(address, static_cast<std::uint32_t>(code));
      case 2:
        return store(address, static_cast<std::uint16_t>(code));
      default:
        return store(address, static_cast<std::uint8_t>(code));
    }
  }
  if (type == DType::boolean) return store(address, static_cast<std::uint8_t>(value != 0));
  assert(std::trunc(value) == value);
  if (type == DType::i32) return store(address, static_cast<std::int32_t>(value));
  store(address, static_cast<std::int64_t>(value));
}

bool representable(DType type, double value) {
  const auto size = std::bit_cast<std::uint64_t>(value) & ~kSignBit;
  if (size > kInfinity) return true;
  if (size == kInfinity) return format_of(type).has_infinity;
  const double rounded = round_to_zero(type, value);
  return std::bit_cast<std::uint64_t>(rounded) == std::bit_cast<std::uint64_t>(value);
}

double round_nearest(DType type, double value) { return round_to(type, value, Direction::nearest); }
double round_to_zero(DType type, double value) {
  return round_to(type, value, Direction::toward_zero);
}
double round_down(DType type, double value) {
  return round_to(type, value, negative(value) ? Direction::away : Direction::toward_zero);
}
double round_up(DType type, double value) {
  return round_to(type, value, negative(value) ? Direction::toward_zero : Direction::away);
}

}  // namespace ringproof::oracle
