// Interval numbers of a fixed number of binary digits, and their outward conversion to Certified.
// Fixed-size types only: the variable-precision type keeps its precision in a process-wide
// variable, which rows judged by several threads at different precisions would race on.
#pragma once

#include <boost/multiprecision/mpfi.hpp>

#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// Every operation rounds outward: the exact result of exact arguments lies inside. Expression
/// templates are on, so that `x = a * b` allocates nothing; never name an expression with `auto`.
template <unsigned decimal_digits>
using Interval =
    boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<decimal_digits>,
                                  boost::multiprecision::et_on>;

/// hi = the binary64 number nearest to the middle, lo = the one nearest to what is left, radius =
/// the distance to the farther end, rounded up. An unbounded or undefined interval has infinite
/// radius.
Certified certify(mpfi_srcptr interval);
template <unsigned digits>
Certified certify(const Interval<digits>& interval) {
  return certify(interval.backend().data());
}

/// The binary64 number nearest to the middle of the interval.
double middle(mpfi_srcptr interval);
/// A binary64 number not below any point of the interval, and one not above.
double upper_end(mpfi_srcptr interval);
double lower_end(mpfi_srcptr interval);
/// Upper bound of the distance between `centre` and any point of the interval.
double farthest(mpfi_srcptr interval, double centre);

}  // namespace ringproof::oracle
