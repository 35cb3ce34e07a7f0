// Storage types: names, exact decoding, rounding and encoding on the bit patterns (dtype.hpp). No
// floating-point operation here rounds, so nothing here depends on the floating-point environment.
#include "oracle/case/dtype.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace ringproof::oracle {
namespace {

constexpr std::array<std::string_view, 9> kNames{"F64",     "F32",  "F16", "BF16", "F8_E4M3",
                                                 "F8_E5M2", "BOOL", "I32", "I64"};

constexpr std::array<Format, 6> kFormats{{
    {53, -1022, std::numeric_limits<double>::max(), true},
    {24, -126, 0x1.fffffep127, true},
    {11, -14, 65504.0, true},
    {8, -126, 0x1.fep127, true},
    {4, -6, 448.0, false},
    {3, -14, 57344.0, true},
}};

constexpr std::uint64_t kSignBit = 1ULL << 63;
constexpr std::uint64_t kInfinity = 0x7ffULL << 52;
constexpr std::uint64_t kQuietNaN = 0x7ff8ULL << 48;

constexpr double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

/// Bits of the nonnegative binary64 number m * 2^e; precondition: there is such a number.
constexpr std::uint64_t compose(std::uint64_t m, int e) {
  if (m == 0) return 0;
  const int top = std::bit_width(m) - 1 + e;  // exponent of the leading digit
  if (top < -1022) return e >= -1074 ? m << (e + 1074) : m >> -(e + 1074);
  const int shift = 53 - std::bit_width(m);
  const std::uint64_t aligned = shift >= 0 ? m << shift : m >> -shift;
  return (static_cast<std::uint64_t>(top + 1023) << 52) | (aligned & ((1ULL << 52) - 1));
}

/// Exponent bits of the encoding of a float type with a sign bit in front.
constexpr int exponent_bits(DType type, const Format& format) {
  return static_cast<int>(8 * size_of(type)) - format.digits;
}

/// Value of an encoding (any float type): the one place that knows how the formats are laid out.
constexpr double value_of(DType type, std::uint64_t code) {
  const Format& format = kFormats[static_cast<std::size_t>(type)];
  const int field = format.digits - 1;
  const std::uint64_t fraction = code & ((1ULL << field) - 1);
  const std::uint64_t last = (1ULL << exponent_bits(type, format)) - 1;
  const std::uint64_t exponent = (code >> field) & last;
  const std::uint64_t sign = (code >> (8 * size_of(type) - 1)) != 0 ? kSignBit : 0;
  if (exponent == last) {
    if (format.has_infinity) return from_bits(sign | (fraction == 0 ? kInfinity : kQuietNaN));
    if (fraction == (1ULL << field) - 1) return from_bits(sign | kQuietNaN);
  }
  const int lowest = format.min_exponent - field;
  if (exponent == 0) return from_bits(sign | compose(fraction, lowest));
  return from_bits(sign |
                   compose(fraction | (1ULL << field), lowest + static_cast<int>(exponent) - 1));
}

template <DType type>
constexpr std::array<double, 256> table_of() {
  std::array<double, 256> values{};
  for (std::uint64_t code = 0; code < 256; ++code) values[code] = value_of(type, code);
  return values;
}
constexpr auto kE4M3 = table_of<DType::f8_e4m3>();
constexpr auto kE5M2 = table_of<DType::f8_e5m2>();

template <class Integer>
Integer load(const std::byte* address) {
  Integer value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

/// Normal binary32 numbers need only their exponent moved; the rest takes the general way.
inline double value_of_f32(std::uint32_t code) {
  const std::uint32_t exponent = (code >> 23) & 0xff;
  if (exponent == 0 || exponent == 0xff) return value_of(DType::f32, code);
  return from_bits((static_cast<std::uint64_t>(code >> 31) << 63) |
                   ((static_cast<std::uint64_t>(code & 0x7fffffff) << 29) + (896ULL << 52)));
}

inline double value_of_f16(std::uint16_t code) {
  const std::uint32_t exponent = (code >> 10) & 0x1f;
  if (exponent == 0 || exponent == 0x1f) return value_of(DType::f16, code);
  return from_bits((static_cast<std::uint64_t>(code >> 15) << 63) |
                   ((static_cast<std::uint64_t>(code & 0x7fff) << 42) + (1008ULL << 52)));
}

template <DType type>
inline double decode_one(const std::byte* address) {
  if constexpr (type == DType::f64) return load<double>(address);
  if constexpr (type == DType::f32) return value_of_f32(load<std::uint32_t>(address));
  if constexpr (type == DType::f16) return value_of_f16(load<std::uint16_t>(address));
  if constexpr (type == DType::bf16) {
    return value_of_f32(static_cast<std::uint32_t>(load<std::uint16_t>(address)) << 16);
  }
  if constexpr (type == DType::f8_e4m3) return kE4M3[load<std::uint8_t>(address)];
  if constexpr (type == DType::f8_e5m2) return kE5M2[load<std::uint8_t>(address)];
  if constexpr (type == DType::boolean) return load<std::uint8_t>(address) != 0 ? 1.0 : 0.0;
  if constexpr (type == DType::i32) return load<std::int32_t>(address);
  if constexpr (type == DType::i64) return static_cast<double>(load<std::int64_t>(address));
}

template <DType type>
void decode_loop(const std::byte* first, std::int64_t stride, std::int64_t count, double* out) {
  constexpr auto bytes = static_cast<std::int64_t>(size_of(type));
  for (std::int64_t n = 0; n < count; ++n) out[n] = decode_one<type>(first + n * stride * bytes);
}

/// Calls `f.template operator()<type>()`: the one switch from a run-time type to a compile-time
/// one.
template <class F>
decltype(auto) dispatch(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f.template operator()<DType::f64>();
    case DType::f32:
      return f.template operator()<DType::f32>();
    case DType::f16:
      return f.template operator()<DType::f16>();
    case DType::bf16:
      return f.template operator()<DType::bf16>();
    case DType::f8_e4m3:
      return f.template operator()<DType::f8_e4m3>();
    case DType::f8_e5m2:
      return f.template operator()<DType::f8_e5m2>();
    case DType::boolean:
      return f.template operator()<DType::boolean>();
    case DType::i32:
      return f.template operator()<DType::i32>();
    case DType::i64:
      break;
  }
  return f.template operator()<DType::i64>();
}

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

double decode(DType type, const std::byte* address) {
  return dispatch(type, [&]<DType t>() { return decode_one<t>(address); });
}

void decode_row(DType type, const std::byte* first, std::int64_t stride, std::int64_t count,
                double* out) {
  dispatch(type, [&]<DType t>() { decode_loop<t>(first, stride, count, out); });
}

std::int64_t decode_integer(DType type, const std::byte* address) {
  if (type == DType::i64) return load<std::int64_t>(address);
  if (type == DType::i32) return load<std::int32_t>(address);
  assert(type == DType::boolean);
  return load<std::uint8_t>(address) != 0 ? 1 : 0;
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
