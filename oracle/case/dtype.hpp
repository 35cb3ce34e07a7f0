// The storage types a case file may hold, and exact conversions from and to binary64.
// Every value of every type is a binary64 value, so decoding is exact; encoding rounds, and the
// direction is part of the function's name: the judge never relies on the processor's rounding mode.
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
std::size_t size_of(DType);
bool is_float(DType);

/// A binary floating-point format: values m * 2^e with `digits` significant bits.
struct Format {
  int digits;              // significand bits with the hidden one: 53, 24, 11, 8, 4, 3
  int min_exponent;        // exponent of the smallest normal number: it is 2^min_exponent
  double largest;          // largest finite value, Omega
  bool has_infinity;       // e4m3 (the "fn" variant) has none
  /// Unit roundoff to nearest, 2^-digits.
  double unit() const;
  /// Smallest positive subnormal.
  double smallest() const;
};
/// Precondition: is_float(type).
const Format& format_of(DType);

/// Exact value of one element (bool, i32: 0/1 and the integer; i64 beyond 2^53 is not for this function).
double decode(DType, const std::byte*);
std::int64_t decode_integer(DType, const std::byte*);
/// Stores a value that the type represents exactly (asserted for the float types; NaN allowed).
void encode(DType, double value, std::byte*);

/// True if `value` is a number of the type (infinities and NaN count where the type has them).
bool representable(DType, double value);

/// Rounding of a binary64 value to the type, as a binary64 value. Gradual underflow; ties to even.
/// Overflow goes to infinity (`round_nearest`, where the type has none: to NaN) or, upwards and
/// downwards, to the neighbour the direction asks for.
double round_nearest(DType, double);
double round_down(DType, double);
double round_up(DType, double);
double round_to_zero(DType, double);

}  // namespace ringproof::oracle
