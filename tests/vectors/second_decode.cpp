// Numbers from bit patterns, as their standards define them: sign, exponent field, fraction.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/vectors/second_truth.hpp"

namespace ringproof::second_truth {
namespace {

/// How the bits of a float type are split, and whether its largest exponent field means infinity
/// and NaN (the e4m3 variant of case files keeps only the pattern of all ones for NaN).
struct Layout {
  int exponent_bits, fraction_bits;
  bool infinity;
};

Layout layout_of(const std::string& dtype) {
  if (dtype == "F64") return {11, 52, true};
  if (dtype == "F32") return {8, 23, true};
  if (dtype == "F16") return {5, 10, true};
  if (dtype == "BF16") return {8, 7, true};
  if (dtype == "F8_E5M2") return {5, 2, true};
  if (dtype == "F8_E4M3") return {4, 3, false};
  throw std::runtime_error("second truth: no float type " + dtype);
}

double number(std::uint64_t bits, const Layout& layout) {
  const std::uint64_t ones = (std::uint64_t{1} << layout.exponent_bits) - 1;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << layout.fraction_bits) - 1);
  const std::uint64_t field = (bits >> layout.fraction_bits) & ones;
  const bool negative = (bits >> (layout.fraction_bits + layout.exponent_bits) & 1) != 0;
  const int bias = static_cast<int>(ones >> 1);
  const bool all_ones = fraction == (std::uint64_t{1} << layout.fraction_bits) - 1;
  double size = 0;
  if (field == ones && (layout.infinity || all_ones)) {
    const bool infinite = layout.infinity && fraction == 0;
    size = infinite ? std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  } else if (field == 0) {
    size = std::ldexp(static_cast<double>(fraction), 1 - bias - layout.fraction_bits);
  } else {
    size = std::ldexp(1 + std::ldexp(static_cast<double>(fraction), -layout.fraction_bits),
                      static_cast<int>(field) - bias);
  }
  return negative ? -size : size;
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t n = bytes.size(); n-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[n]);
  }
  return value;
}

}  // namespace

Array decode(const std::string& dtype, std::vector<std::int64_t> shape,
             std::span<const std::byte> bytes) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  const std::size_t width = count == 0 ? 1 : bytes.size() / count;
  Array array{std::move(shape), {}, {}};
  const bool integer = dtype == "I32" || dtype == "I64";
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint64_t bits = little_endian(bytes.subspan(n * width, width));
    if (dtype == "I32") {
      array.integers.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)));
    } else if (integer) {
      array.integers.push_back(static_cast<std::int64_t>(bits));
    } else {
      array.values.push_back(dtype == "BOOL" ? (bits != 0 ? 1 : 0)
                                             : number(bits, layout_of(dtype)));
    }
  }
  return array;
}

}  // namespace ringproof::second_truth
