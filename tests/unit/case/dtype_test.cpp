// Storage types against definitions that share nothing with dtype.cpp: values from the formula of a
// floating-point format, rounding from the sorted list of all values, binary32 from the processor.
#include "oracle/case/dtype.hpp"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/property.hpp"

namespace ringproof::oracle {
namespace {

constexpr DType kFloats[] = {DType::f64,  DType::f32,     DType::f16,
                             DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
constexpr DType kSmall[] = {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double decode_code(DType type, std::uint64_t code) {
  std::byte bytes[8];
  std::memcpy(bytes, &code, sizeof code);
  return decode(type, bytes);
}

std::uint64_t encode_code(DType type, double value) {
  std::uint64_t code = 0;
  std::byte bytes[8] = {};
  encode(type, value, bytes);
  std::memcpy(&code, bytes, sizeof code);
  return code;
}

/// Same number; zeros of different sign are different, all NaN are the same.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

/// (-1)^s * 2^(e - bias) * (1 + f / 2^bits), or without the one at e = 0: the textbook's formula.
double by_formula(int exponent_bits, int fraction_bits, bool fn, std::uint64_t code) {
  const std::uint64_t fraction = code & ((1ULL << fraction_bits) - 1);
  const auto exponent = static_cast<int>((code >> fraction_bits) & ((1U << exponent_bits) - 1));
  const double sign = (code >> (exponent_bits + fraction_bits)) != 0 ? -1.0 : 1.0;
  const int last = (1 << exponent_bits) - 1;
  const int bias = last / 2;
  const double scaled = std::ldexp(static_cast<double>(fraction), -fraction_bits);
  if (fn && exponent == last && fraction == (1ULL << fraction_bits) - 1) return std::nan("");
  if (!fn && exponent == last) return fraction == 0 ? sign * kInfinity : std::nan("");
  return sign *
         (exponent == 0 ? std::ldexp(scaled, 1 - bias) : std::ldexp(1 + scaled, exponent - bias));
}

double by_formula(DType type, std::uint64_t code) {
  switch (type) {
    case DType::f16:
      return by_formula(5, 10, false, code);
    case DType::bf16:
      return by_formula(8, 7, false, code);
    case DType::f8_e4m3:
      return by_formula(4, 3, true, code);
    default:
      return by_formula(5, 2, false, code);
  }
}

std::uint64_t codes_of(DType type) { return 1ULL << (8 * size_of(type)); }

/// All nonnegative finite values, rising: the code is the index.
std::vector<double> values_of(DType type) {
  std::vector<double> values;
  for (std::uint64_t code = 0; code < codes_of(type) / 2; ++code) {
    const double value = by_formula(type, code);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

struct Rounded {
  double nearest, down, up, to_zero;
};
Rounded round_all(DType type, double x) {
  return {round_nearest(type, x), round_down(type, x), round_up(type, x), round_to_zero(type, x)};
}
bool same(const Rounded& a, const Rounded& b) {
  return same(a.nearest, b.nearest) && same(a.down, b.down) && same(a.up, b.up) &&
         same(a.to_zero, b.to_zero);
}
Rounded negated(const Rounded& r) { return {-r.nearest, -r.up, -r.down, -r.to_zero}; }

/// Counts instead of asserting each of a million comparisons; the first failure is named.
struct Tally {
  int failures = 0;
  std::string first;
  void check(bool good, DType type, double x) {
    if (good) return;
    if (failures++ == 0) {
      char text[64];
      std::snprintf(text, sizeof text, " at %a", x);
      first = std::string(name(type)) + text;
    }
  }
};

}  // namespace

TEST_CASE("every code of the 8 and 16 bit types decodes to the value of the format's formula") {
  for (const DType type : kSmall) {
    Tally tally;
    for (std::uint64_t code = 0; code < codes_of(type); ++code) {
      const double expected = by_formula(type, code);
      tally.check(same(decode_code(type, code), expected), type, static_cast<double>(code));
      if (std::isnan(expected)) continue;
      tally.check(encode_code(type, expected) == code, type, expected);
      tally.check(representable(type, expected), type, expected);
    }
    INFO(tally.first);
    CHECK(tally.failures == 0);
  }
}

TEST_CASE("formats have the constants that their standards state") {
  CHECK(decode_code(DType::f16, 0x3c00) == 1);
  CHECK(decode_code(DType::f16, 0x0001) == 0x1p-24);
  CHECK(decode_code(DType::bf16, 0x3f80) == 1);
  CHECK(decode_code(DType::f8_e4m3, 0x7e) == 448);
  CHECK(std::isnan(decode_code(DType::f8_e4m3, 0x7f)));
  CHECK(decode_code(DType::f8_e4m3, 0x01) == 0x1p-9);
  CHECK(decode_code(DType::f8_e5m2, 0x7b) == 57344);
  CHECK(decode_code(DType::f8_e5m2, 0x7c) == kInfinity);
  CHECK(decode_code(DType::f8_e5m2, 0x01) == 0x1p-16);
  CHECK(format_of(DType::f32).largest == std::numeric_limits<float>::max());
  CHECK(format_of(DType::f32).smallest() == std::numeric_limits<float>::denorm_min());
  CHECK(format_of(DType::f64).smallest() == std::numeric_limits<double>::denorm_min());
  CHECK(format_of(DType::f64).unit() == 0x1p-53);
  CHECK(format_of(DType::bf16).unit() == 0x1p-8);
  CHECK(format_of(DType::f8_e5m2).unit() == 0x1p-3);
  for (const DType type : kSmall) {
    CHECK(format_of(type).largest == values_of(type).back());
    CHECK(format_of(type).smallest() == values_of(type)[1]);
  }
}

TEST_CASE("around every value and midpoint of a small type the neighbours are those of the list") {
  for (const DType type : kSmall) {
    const auto values = values_of(type);
    Tally tally;
    for (std::size_t n = 0; n + 1 < values.size(); ++n) {
      const double low = values[n], high = values[n + 1];
      const double middle = low + (high - low) / 2;  // exact: these types have few digits
      const double even = n % 2 == 0 ? low : high;
      const auto between = [&](double nearest) { return Rounded{nearest, low, high, low}; };
      const std::pair<double, Rounded> expected[] = {
          {low, {low, low, low, low}},
          {std::nextafter(low, high), between(low)},
          {std::nextafter(middle, low), between(low)},
          {middle, between(even)},
          {std::nextafter(middle, high), between(high)},
          {std::nextafter(high, low), between(high)},
      };
      for (const auto& [x, rounded] : expected) {
        tally.check(same(round_all(type, x), rounded), type, x);
        tally.check(same(round_all(type, -x), negated(rounded)), type, -x);
        tally.check(representable(type, x) == (x == low), type, x);
      }
    }
    INFO(tally.first);
    CHECK(tally.failures == 0);
  }
}

TEST_CASE("beyond the largest value each direction gives its neighbour, infinity, or NaN") {
  for (const DType type : kFloats) {
    if (type == DType::f64) continue;
    const Format& format = format_of(type);
    const double omega = format.largest;
    const double ulp = std::ldexp(1.0, std::ilogb(omega) - format.digits + 1);
    const double overflow = format.has_infinity ? kInfinity : std::nan("");
    // e4m3 spends its last code on NaN, so its Omega is even and the midpoint still rounds down.
    const double tie = type == DType::f8_e4m3 ? omega : overflow;
    const double middle = omega + ulp / 2;
    INFO(name(type));
    const auto check = [&](double x, double nearest) {
      const Rounded expected{nearest, omega, kInfinity, omega};
      CHECK(same(round_all(type, x), expected));
      CHECK(same(round_all(type, -x), negated(expected)));
      CHECK_FALSE(representable(type, x));
    };
    check(std::nextafter(omega, kInfinity), omega);
    check(std::nextafter(middle, 0.0), omega);
    check(middle, tie);
    check(std::nextafter(middle, kInfinity), overflow);
    check(std::numeric_limits<double>::max(), overflow);
    CHECK(same(round_nearest(type, kInfinity), overflow));
    CHECK(same(round_up(type, kInfinity), kInfinity));
    CHECK(same(round_down(type, kInfinity), format.has_infinity ? kInfinity : omega));
    CHECK(same(round_to_zero(type, -kInfinity), format.has_infinity ? -kInfinity : -omega));
    CHECK(representable(type, kInfinity) == format.has_infinity);
  }
}

TEST_CASE("zeros keep their sign, NaN stays NaN, and the smallest numbers round from either side") {
  for (const DType type : kFloats) {
    INFO(name(type));
    CHECK(same(round_all(type, 0.0), {0.0, 0.0, 0.0, 0.0}));
    CHECK(same(round_all(type, -0.0), {-0.0, -0.0, -0.0, -0.0}));
    CHECK(std::isnan(round_nearest(type, std::nan(""))));
    CHECK(std::isnan(round_up(type, -std::nan(""))));
    CHECK(representable(type, std::nan("")));
    CHECK(std::isnan(decode_code(type, encode_code(type, std::nan("")))));
    CHECK(same(decode_code(type, encode_code(type, -0.0)), -0.0));
    if (type == DType::f64) continue;
    const double smallest = format_of(type).smallest();
    const double tiny = std::numeric_limits<double>::denorm_min();
    CHECK(same(round_all(type, tiny), {0.0, 0.0, smallest, 0.0}));
    CHECK(same(round_all(type, -tiny), {-0.0, -smallest, -0.0, -0.0}));
    CHECK(same(round_nearest(type, smallest / 2), 0.0));
    CHECK(same(round_nearest(type, std::nextafter(smallest / 2, 1.0)), smallest));
  }
}

TEST_CASE("binary64 rounds to itself and its codes are its bits") {
  test::property("any bit pattern survives", [](std::uint64_t bits) {
    const auto x = std::bit_cast<double>(bits);
    RC_ASSERT(same(round_all(DType::f64, x), {x, x, x, x}));
    RC_ASSERT(std::isnan(x) || encode_code(DType::f64, x) == bits);
    RC_ASSERT(same(decode_code(DType::f64, bits), x));
  });
}

/// The processor's conversion in its four modes; volatile keeps the compiler from doing it earlier.
Rounded by_processor(double x) {
  const auto convert = [&](int mode) {
    std::fesetround(mode);
    const volatile double wide = x;
    const volatile float narrow = static_cast<float>(wide);
    std::fesetround(FE_TONEAREST);
    return static_cast<double>(narrow);
  };
  return {convert(FE_TONEAREST), convert(FE_DOWNWARD), convert(FE_UPWARD), convert(FE_TOWARDZERO)};
}

/// The processor overflows to infinity or the largest number exactly as round_* says.
TEST_CASE("binary32 rounds as the processor does, and its codes are the processor's") {
  Tally tally;
  const auto check = [&](double x) {
    const Rounded expected = by_processor(x);
    tally.check(same(round_all(DType::f32, x), expected), DType::f32, x);
    tally.check(same(round_all(DType::f32, -x), negated(expected)), DType::f32, -x);
  };
  // A prime step visits every exponent and all low bits; each value with its midpoint and their
  // ulps.
  for (std::uint64_t code = 0; code < 0x7f800000; code += 49999) {
    const auto low = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code)));
    const auto high =
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code + 1)));
    tally.check(same(decode_code(DType::f32, code), low), DType::f32, low);
    tally.check(encode_code(DType::f32, low) == code, DType::f32, low);
    if (!std::isfinite(high)) continue;
    const double middle = low + (high - low) / 2;
    for (const double x : {low, middle}) {
      check(x);
      check(std::nextafter(x, kInfinity));
      check(std::nextafter(x, -1.0));
    }
  }
  for (const double x :
       {0x1.ffffffp127, 0x1.fffffefffffffp127, 0x1p128, 1e300, 0x1p-149, 0x1p-150}) {
    check(x);
  }
  INFO(tally.first);
  CHECK(tally.failures == 0);
}

TEST_CASE("rounding and decoding do not depend on the floating-point environment") {
  std::vector<std::pair<DType, double>> inputs;
  for (const DType type : kFloats) {
    for (const double x :
         {1.0 / 3, -1.0 / 3, 0x1.8p-150, -0x1p-130, 1e-310, 65519.99, 464.5, 1e38}) {
      inputs.emplace_back(type, x);
    }
  }
  std::vector<Rounded> usual;
  for (const auto& [type, x] : inputs) usual.push_back(round_all(type, x));
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {0x2000U, 0x4000U, 0x6000U}) {  // down, up, to zero
    _mm_setcsr((before & ~0x6000U) | mode | 0x8040U);  // with flush-to-zero, denormals-are-zero
    std::vector<Rounded> other;
    for (const auto& [type, x] : inputs) other.push_back(round_all(type, x));
    const double subnormals[] = {decode_code(DType::f32, 1), decode_code(DType::bf16, 1),
                                 decode_code(DType::f16, 1)};
    _mm_setcsr(before);
    CHECK(subnormals[0] == 0x1p-149);
    CHECK(subnormals[1] == 0x1p-133);
    CHECK(subnormals[2] == 0x1p-24);
    for (std::size_t n = 0; n < inputs.size(); ++n) CHECK(same(other[n], usual[n]));
  }
}

TEST_CASE("rows decode as their elements do, with any stride") {
  test::property("decode_row equals decode", [](const std::vector<std::uint8_t>& raw) {
    const auto* bytes = reinterpret_cast<const std::byte*>(raw.data());
    const auto type = static_cast<DType>(*rc::gen::inRange(0, 9));
    const auto stride = *rc::gen::inRange<std::int64_t>(0, 4);
    const auto have = static_cast<std::int64_t>(raw.size() / size_of(type));
    const std::int64_t count = have == 0 ? 0 : stride == 0 ? 5 : (have - 1) / stride + 1;
    std::vector<double> out(static_cast<std::size_t>(count));
    decode_row(type, bytes, stride, count, out.data());
    for (std::int64_t n = 0; n < count; ++n) {
      const auto* address = bytes + n * stride * static_cast<std::int64_t>(size_of(type));
      RC_ASSERT(same(out[static_cast<std::size_t>(n)], decode(type, address)));
    }
  });
}

TEST_CASE("a row of one element is that element for every code of 16 bits and less") {
  const unsigned before = _mm_getcsr();
  for (const DType type : kSmall) {
    Tally tally;
    for (const unsigned mode : {before, before | 0x8040U}) {  // with denormals-are-zero, too
      for (std::uint64_t code = 0; code < codes_of(type); ++code) {
        std::byte bytes[8];
        std::memcpy(bytes, &code, sizeof code);
        double value = 0;
        _mm_setcsr(mode);
        decode_row(type, bytes, 1, 1, &value);
        _mm_setcsr(before);
        tally.check(same(value, by_formula(type, code)), type, static_cast<double>(code));
      }
    }
    INFO(tally.first);
    CHECK(tally.failures == 0);
  }
  test::property("and for any code of 32 bits", [](std::uint32_t code) {
    double value = 0;
    decode_row(DType::f32, reinterpret_cast<const std::byte*>(&code), 1, 1, &value);
    RC_ASSERT(same(value, static_cast<double>(std::bit_cast<float>(code))));
  });
}

TEST_CASE("names of types are those of safetensors, and no others are read") {
  for (int n = 0; n < 9; ++n) {
    const auto type = static_cast<DType>(n);
    DType read{};
    CHECK(parse_dtype(name(type), read));
    CHECK(read == type);
  }
  DType type{};
  for (const char* other : {"", "f32", "F8", "U8", "F8_E4M3FNUZ", "I16", "F32 "}) {
    CHECK_FALSE(parse_dtype(other, type));
  }
  CHECK(decode_code(DType::boolean, 2) == 1);
  CHECK(decode_code(DType::i32, 0xffffffff) == -1);
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  CHECK(decode_integer(DType::i64, reinterpret_cast<const std::byte*>(&large)) == large);
}

}  // namespace ringproof::oracle
