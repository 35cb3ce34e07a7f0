// Refuses to certify where the proofs of docs/double_double.md would not hold: another rounding
// mode, flush to zero, denormals read as zero, contracted or reassociated arithmetic. The operands
// are volatile, so that the checks run on the processor and not in the compiler.
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/truth/row_batch.hpp"

namespace ringproof::oracle {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("this process cannot certify: ") + what);
}

/// 1 + 2^-53 is a tie: only rounding to nearest-even gives 1 for it and 1 + 2^-51 for its odd twin.
bool rounds_to_nearest_even() {
  volatile double one = 1, half_unit = 0x1p-53, odd = 1 + 0x1p-52, minus_one = -1;
  const volatile double even_tie = one + half_unit, odd_tie = odd + half_unit;
  const volatile double above = one + half_unit * 1.5, negative = minus_one - half_unit;
  return even_tie == 1 && odd_tie == 1 + 0x1p-51 && above == 1 + 0x1p-52 && negative == -1;
}

bool keeps_subnormal_results() {
  volatile double smallest_normal = 0x1p-1022, half = 0.5;
  const volatile double result = smallest_normal * half;
  return result != 0;
}

bool reads_subnormal_operands() {
  volatile double subnormal = 0x1p-1074, large = 0x1p1000;
  const volatile double result = subnormal * large;
  return result == 0x1p-74;
}

/// (1 + e)^2 - (1 + 2 e) is 0 with two roundings and e^2 with one.
bool does_not_contract() {
  volatile double x = 1 + 0x1p-30, square = 1 + 0x1p-29;
  const double a = x, b = square;
  const double difference = a * a - b;
  return difference == 0;
}

/// The low word of a TwoSum vanishes if the compiler treats addition as associative.
bool does_not_reassociate() {
  volatile double x = 1, y = 0x1p-60;
  const double a = x, b = y;
  const double sum = a + b;
  const double b_part = sum - a;
  const double low = (a - (sum - b_part)) + (b - b_part);
  return low == 0x1p-60;
}

bool fuses_with_one_rounding() {
  volatile double x = 1 + 0x1p-30, square = -(1 + 0x1p-29);
  return std::fma(x, x, square) == 0x1p-60;
}

/// The same facts seen by the vectors in use: exp of 8 numbers and its low words, bit for bit.
bool vectors_agree() {
  alignas(64) double hi[8], lo[8], out_hi[8], out_lo[8];
  for (int n = 0; n < 8; ++n) {
    hi[n] = std::ldexp(-0.6931471805599453, n);  // -2^n ln 2, exact by construction
    lo[n] = std::ldexp(-2.3190468138462996e-17, n);
  }
  exp_dd_array(hi, lo, 8, out_hi, out_lo);
  for (int n = 0; n < 8; ++n) {
    const double exact = std::ldexp(1.0, -(1 << n));  // hi + lo is -2^n ln 2 to 2^-100
    if (!(std::abs((out_hi[n] - exact) + out_lo[n]) <= exact * 0x1p-96)) return false;
  }
  return true;
}

}  // namespace

void arithmetic_self_test() {
  require(rounds_to_nearest_even(), "the rounding mode is not to nearest, ties to even");
  require(reads_subnormal_operands(), "subnormal operands are read as zero");
  require(keeps_subnormal_results(), "subnormal results are flushed to zero");
  require(does_not_contract(), "products and sums are contracted");
  require(does_not_reassociate(), "additions are reassociated");
  require(fuses_with_one_rounding(), "std::fma rounds twice");
  require(vectors_agree(), "vector arithmetic is not exact where it must be");
}

}  // namespace ringproof::oracle
