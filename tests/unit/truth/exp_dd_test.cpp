// exp and tanh in double-double against MPFR: the constants, and the stated bound on dense and
// random arguments, with low words as large as a normalised number may have.
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "oracle/truth/error_bounds.hpp"
#include "oracle/truth/row_batch.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

constexpr mpfr_prec_t kBits = 320;

struct Big {
  mpfr_t value;
  Big() { mpfr_init2(value, kBits); }
  ~Big() { mpfr_clear(value); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
};

/// Random arguments: RINGPROOF_TRUTH_EXP, or a number that fits into continuous integration.
long wanted_arguments() {
  const char* wanted = std::getenv("RINGPROOF_TRUTH_EXP");
  return wanted != nullptr ? std::atol(wanted) : 24000;
}

struct Arguments {
  std::vector<double> hi, lo;
  void add(double high, double share) {
    hi.push_back(high);
    // |lo| <= 2^-53 |hi|, the most that a normalised pair may have and a little more than TwoSum
    // leaves.
    lo.push_back(0x1p-53 * std::abs(high) * share);
  }
};

Arguments arguments(double lowest, double highest) {
  std::mt19937_64 random(11);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double shares[] = {1, -1, 0, 0.5};
  Arguments all;
  // Where the reduction changes its integer, and beside it; whole numbers; the ends.
  for (int k = -63700; k <= 92; k += 7) {
    const double middle = (k + 0.5) * 0.010830424696249145;
    for (const double x : {middle, std::nextafter(middle, 10.0), k * 0.010830424696249145}) {
      if (x >= lowest && x <= highest) all.add(x, shares[all.hi.size() % 4]);
    }
  }
  for (int k = static_cast<int>(lowest); k <= static_cast<int>(highest); ++k)
    all.add(k, shares[all.hi.size() % 4]);
  while (static_cast<long>(all.hi.size()) < wanted_arguments()) {
    const double share = 2 * uniform() - 1;
    all.add(lowest + (highest - lowest) * uniform(), share);
    all.add(-std::exp2(-70 * uniform()), share);
    all.add(std::exp2(-70 * uniform()), share);
    all.add(-uniform(), share >= 0 ? 1 : -1);
  }
  all.add(0, 0);
  while (all.hi.size() % 8 != 0) all.add(0, 0);
  return all;
}

/// |hi + lo - exact| / bound.
double share_of_bound(double hi, double lo, const Big& exact, double bound) {
  Big difference;
  mpfr_sub_d(difference.value, exact.value, hi, MPFR_RNDN);
  mpfr_sub_d(difference.value, difference.value, lo, MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.value, MPFR_RNDA)) / bound;
}

void set_sum(Big& big, double hi, double lo) {
  mpfr_set_d(big.value, hi, MPFR_RNDN);
  mpfr_add_d(big.value, big.value, lo, MPFR_RNDN);
}

TEST_CASE("the constants of exp_dd are what they are called") {
  Big exact, rest;
  mpfr_const_log2(exact.value, MPFR_RNDN);
  mpfr_div_ui(exact.value, exact.value, 64, MPFR_RNDN);
  mpfr_ui_div(rest.value, 1, exact.value, MPFR_RNDN);
  CHECK(kInverseLn2Over64 == mpfr_get_d(rest.value, MPFR_RNDN));
  mpfr_set(rest.value, exact.value, MPFR_RNDN);
  for (const double word : kLn2Over64) mpfr_sub_d(rest.value, rest.value, word, MPFR_RNDN);
  CHECK(mpfr_get_d(rest.value, MPFR_RNDN) >= 0);
  CHECK(mpfr_get_d(rest.value, MPFR_RNDN) <= 0x1p-128);
  for (int word = 0; word < 2; ++word) {  // at most 33 bits
    int exponent = 0;
    const double scaled = std::ldexp(std::frexp(kLn2Over64[word], &exponent), 33);
    CHECK(scaled == std::trunc(scaled));
  }
  unsigned long factorial = 1;
  for (unsigned long n = 0; n <= 11; ++n) {
    factorial *= n > 0 ? n : 1;
    mpfr_set_ui(exact.value, 1, MPFR_RNDN);
    mpfr_div_ui(exact.value, exact.value, factorial, MPFR_RNDN);
    CHECK(kInverseFactorial[n] == mpfr_get_d(exact.value, MPFR_RNDN));
    mpfr_sub_d(exact.value, exact.value, kInverseFactorial[n], MPFR_RNDN);
    if (n < 6) CHECK(kInverseFactorialLow[n] == mpfr_get_d(exact.value, MPFR_RNDN));
  }
  for (int i = 0; i < 64; ++i) {
    mpfr_set_d(exact.value, i / 64.0, MPFR_RNDN);
    mpfr_exp2(exact.value, exact.value, MPFR_RNDN);
    CHECK(exp_table().entry[i][0] == mpfr_get_d(exact.value, MPFR_RNDN));
    mpfr_sub_d(exact.value, exact.value, exp_table().entry[i][0], MPFR_RNDN);
    CHECK(exp_table().entry[i][1] == mpfr_get_d(exact.value, MPFR_RNDN));
  }
}

TEST_CASE("exp_dd keeps its stated error for every argument its callers can pass") {
  const Arguments x = arguments(bounds::kExpLowest - 1, 1);
  const auto count = static_cast<std::int64_t>(x.hi.size());
  std::vector<double> hi(x.hi.size()), lo(x.hi.size());
  exp_dd_array(x.hi.data(), x.lo.data(), count, hi.data(), lo.data());
  double worst = 0, normalised = 0;
  for (std::size_t n = 0; n < x.hi.size(); ++n) {
    Big exact;
    set_sum(exact, x.hi[n], x.lo[n]);
    mpfr_exp(exact.value, exact.value, MPFR_RNDN);
    const double relative = bounds::kExpConstant + bounds::kExpSlope * std::abs(x.hi[n]);
    const double share = share_of_bound(hi[n], lo[n], exact, hi[n] * relative + 0x1p-1074);
    INFO("x = " << x.hi[n] << " + " << x.lo[n]);
    if (share > worst) CHECK(share <= 1);
    worst = std::max(worst, share);
    normalised = std::max(normalised, std::abs(lo[n]) / hi[n]);
  }
  CHECK(normalised <= 0x1p-53);
  CHECK(worst > 0.02);  // a bound nobody comes near says nothing about exp
}

TEST_CASE("the polynomial of exp_dd has its last term") {
  // At the ends of the reduced range the term of degree 11 is 2^-108 of the result, with the sign
  // of R: far below the stated error, but seen in the mean, where roundings cancel.
  double drift[2] = {0, 0};
  constexpr int kArguments = 3000;
  for (const int side : {0, 1}) {
    std::vector<double> x(kArguments), zero(kArguments), hi(kArguments), lo(kArguments);
    for (int n = 0; n < kArguments; ++n) {
      x[static_cast<std::size_t>(n)] =
          (-n - 100 + (side == 0 ? 0.495 : -0.495)) / kInverseLn2Over64;
    }
    exp_dd_array(x.data(), zero.data(), kArguments, hi.data(), lo.data());
    for (std::size_t n = 0; n < x.size(); ++n) {
      Big exact, error;
      set_sum(exact, x[n], 0);
      mpfr_exp(exact.value, exact.value, MPFR_RNDN);
      set_sum(error, hi[n], lo[n]);
      mpfr_sub(error.value, error.value, exact.value, MPFR_RNDN);
      mpfr_div(error.value, error.value, exact.value, MPFR_RNDN);
      drift[side] += mpfr_get_d(error.value, MPFR_RNDN) / kArguments;
    }
  }
  CHECK(std::abs(drift[0] - drift[1]) <= 0x1p-109);
}

TEST_CASE("tanh of a magnitude keeps its stated error") {
  Arguments x = arguments(0, 400);
  for (std::size_t n = 0; n < x.hi.size(); ++n) x.hi[n] = std::abs(x.hi[n]);
  const auto count = static_cast<std::int64_t>(x.hi.size());
  std::vector<double> hi(x.hi.size()), lo(x.hi.size());
  tanh_dd_array(x.hi.data(), x.lo.data(), count, hi.data(), lo.data());
  double worst = 0;
  for (std::size_t n = 0; n < x.hi.size(); ++n) {
    Big exact;
    set_sum(exact, x.hi[n], x.lo[n]);
    mpfr_tanh(exact.value, exact.value, MPFR_RNDN);
    const double share = share_of_bound(hi[n], lo[n], exact, bounds::kSoftcap);
    INFO("x = " << x.hi[n] << " + " << x.lo[n]);
    if (share > worst) CHECK(share <= 1);
    worst = std::max(worst, share);
  }
  CHECK(worst > 0);
}

}  // namespace
}  // namespace ringproof::test
