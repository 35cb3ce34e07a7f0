// Outward conversions of intervals (interval.hpp). The directed roundings are MPFR's: they do not
// depend on the processor's rounding mode.
#include "oracle/truth/interval.hpp"

#include <cmath>
#include <limits>

namespace ringproof::oracle {
namespace {

/// MPFR keeps constants such as log 2 per thread; they go with the thread.
struct CacheOfThread {
  ~CacheOfThread() { mpfr_free_cache(); }
};

/// A temporary that holds sums and differences of interval ends and binary64 numbers closely.
class Temporary {
 public:
  explicit Temporary(mpfi_srcptr interval) {
    static thread_local CacheOfThread cache;
    (void)cache;
    mpfr_init2(value_, mpfi_get_prec(interval) + 64);
  }
  ~Temporary() { mpfr_clear(value_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  mpfr_ptr operator*() { return value_; }

 private:
  mpfr_t value_;
};

/// max(right - hi - lo, hi + lo - left), rounded up.
double farthest_from_pair(mpfi_srcptr interval, double hi, double lo) {
  Temporary above(interval), below(interval);
  mpfr_sub_d(*above, &interval->right, hi, MPFR_RNDU);
  mpfr_sub_d(*above, *above, lo, MPFR_RNDU);
  mpfr_sub_d(*below, &interval->left, hi, MPFR_RNDD);
  mpfr_sub_d(*below, *below, lo, MPFR_RNDD);
  return std::max(mpfr_get_d(*above, MPFR_RNDU), -mpfr_get_d(*below, MPFR_RNDD));
}

}  // namespace

double middle(mpfi_srcptr interval) {
  Temporary centre(interval);
  mpfi_mid(*centre, interval);
  return mpfr_get_d(*centre, MPFR_RNDN);
}

double upper_end(mpfi_srcptr interval) { return mpfr_get_d(&interval->right, MPFR_RNDU); }
double lower_end(mpfi_srcptr interval) { return mpfr_get_d(&interval->left, MPFR_RNDD); }

double farthest(mpfi_srcptr interval, double centre) {
  return farthest_from_pair(interval, centre, 0);
}

Certified certify(mpfi_srcptr interval) {
  const Certified unknown{0, 0, std::numeric_limits<double>::infinity()};
  if (mpfi_bounded_p(interval) == 0) return unknown;
  Temporary centre(interval);
  mpfi_mid(*centre, interval);
  Certified result;
  result.hi = mpfr_get_d(*centre, MPFR_RNDN);
  if (!std::isfinite(result.hi)) return unknown;
  mpfr_sub_d(*centre, *centre, result.hi, MPFR_RNDN);
  result.lo = mpfr_get_d(*centre, MPFR_RNDN);
  result.radius = farthest_from_pair(interval, result.hi, result.lo);
  return result;
}

}  // namespace ringproof::oracle
