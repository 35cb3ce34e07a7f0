// The storage types a case file may hold, and exact conversions from and to binary64. Every value
// of every float type is a binary64 value, so decoding is exact; encoding rounds, and the direction
// is part of the function's name. All of it is integer arithmetic on bit patterns, or a conversion
// that is exact in every mode: neither the processor's rounding mode nor flush-to-zero can change a
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringproof::oracle {

enum class DType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, boolean, i32, i64 };

/// safetensors name ("F64", "BF16", "F8_E4M3", ...) of a type.
std::string_view name(DType);
/// Type of a safetensors name; false if this project does not read it.
bool parse_dtype(std::string_view, DType&);
/// Bytes of one element.
constexpr std::size_t size_of(DType type) {
  constexpr std::size_t kBytes[] = {8, 4, 2, 2, 1, 1, 1, 4, 8};
  return kBytes[static_cast<std::size_t>(type)];
}
constexpr bool is_float(DType type) { return type <= DType::f8_e5m2; }

/// A binary floating-point format: values m * 2^e with `digits` significant bits.
struct Format {
  int digits;         // significand bits with the hidden one: 53, 24, 11, 8, 4, 3
  int min_exponent;   // exponent of the smallest normal number: it is 2^min_exponent
  double largest;     // largest finite value, Omega
  bool has_infinity;  // e4m3 (the "fn" variant) has none
  /// Unit roundoff to nearest, 2^-digits.
  double unit() const;
  /// Smallest positive subnormal.
  double smallest() const;
};
/// Precondition: is_float(type).
const Format& format_of(DType);

/// Exact value of one element (boolean: 0 or 1, any other byte than 0 is true; i32: the integer).
/// i64 is for decode_integer: beyond 2^53 it is not a binary64 value.
double decode(DType, const std::byte*);
/// Exact values of `count` elements, `stride` elements apart; the form for loops.
void decode_row(DType, const std::byte* first, std::int64_t stride, std::int64_t count,
                double* out);  // [count]
/// Precondition: boolean, i32 or i64.
std::int64_t decode_integer(DType, const std::byte*);
/// Stores a value that the type represents exactly (asserted; NaN becomes the type's quiet NaN).
void encode(DType, double value, std::byte*);

/// True if `value` is a number of the type (infinities and NaN count where the type has them).
bool representable(DType, double value);

/// Rounding of a binary64 value to a float type, as a binary64 value. Gradual underflow; ties to
/// even; a zero keeps the sign of the value. Beyond Omega:
///   nearest   infinity, from the midpoint of Omega and the next number of an unbounded format on;
///             NaN where the type has no infinity;
///   down, up  Omega towards zero; away from zero infinity, also where the type has none: nothing
///             in the type bounds the value;
///   to_zero   Omega; an infinity stays one where the type has it.
double round_nearest(DType, double);
double round_down(DType, double);
double round_up(DType, double);
double round_to_zero(DType, double);

}  // namespace ringproof::oracle
