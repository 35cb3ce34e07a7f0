// Decoding (dtype.hpp): exact values from the bit patterns of the storage types. Elements go
// through the formats' definition; rows of ordinary numbers through a loop without branches beside
// it.
#include <cassert>
#include <cstring>

#include "oracle/case/binary64.hpp"

namespace ringproof::oracle {
namespace {

using namespace bits;

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

/// A number of a 16 or 32 bit type that becomes a binary32 pattern by shifting: `binary32(code)`,
/// unless `special(code)`. Subnormal numbers are special everywhere, because the processor's
/// further conversion to binary64 is exact, but depends on the environment there
/// (denormals-are-zero).
struct PlainF32 {
  using Code = std::uint32_t;
  static bool special(Code code) { return (code & 0x7f800000) == 0 && (code & 0x007fffff) != 0; }
  static std::uint32_t binary32(Code code) { return code; }
};
struct PlainBF16 {
  using Code = std::uint16_t;
  static bool special(Code code) { return (code & 0x7f80) == 0 && (code & 0x007f) != 0; }
  static std::uint32_t binary32(Code code) { return static_cast<std::uint32_t>(code) << 16; }
};
struct PlainF16 {
  using Code = std::uint16_t;
  static bool special(Code code) {
    const std::uint32_t size =
        code & 0x7fffU;  // in one comparison each: subnormal, infinite or NaN
    return (size - 1U < 0x03ffU) | (size >= 0x7c00U);
  }
  static std::uint32_t binary32(Code code) {
    const std::uint32_t size = code & 0x7fffU;
    const std::uint32_t moved = (size << 13) + (112U << 23);  // from bias 15 to bias 127
    return (static_cast<std::uint32_t>(code & 0x8000U) << 16) | (size == 0 ? 0 : moved);
  }
};

/// A row without special numbers in loops without branches; false if it has one.
template <class Plain>
bool decode_plain(const std::byte* first, std::int64_t count, double* out) {
  using Code = typename Plain::Code;
  const auto code = [&](std::int64_t n) {
    return load<Code>(first + n * static_cast<std::int64_t>(sizeof(Code)));
  };
  unsigned special = 0;
  for (std::int64_t n = 0; n < count; ++n)
    special |= static_cast<unsigned>(Plain::special(code(n)));
  if (special != 0) return false;
  for (std::int64_t n = 0; n < count; ++n) {
    out[n] = static_cast<double>(std::bit_cast<float>(Plain::binary32(code(n))));
  }
  return true;
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

}  // namespace

double decode(DType type, const std::byte* address) {
  return dispatch(type, [&]<DType t>() { return decode_one<t>(address); });
}

void decode_row(DType type, const std::byte* first, std::int64_t stride, std::int64_t count,
                double* out) {
  if (stride == 1) {
    if (type == DType::f32 && decode_plain<PlainF32>(first, count, out)) return;
    if (type == DType::f16 && decode_plain<PlainF16>(first, count, out)) return;
    if (type == DType::bf16 && decode_plain<PlainBF16>(first, count, out)) return;
  }
  dispatch(type, [&]<DType t>() { decode_loop<t>(first, stride, count, out); });
}

std::int64_t decode_integer(DType type, const std::byte* address) {
  if (type == DType::i64) return load<std::int64_t>(address);
  if (type == DType::i32) return load<std::int32_t>(address);
  assert(type == DType::boolean);
  return load<std::uint8_t>(address) != 0 ? 1 : 0;
}

}  // namespace ringproof::oracle
