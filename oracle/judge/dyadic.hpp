// Exact numbers of the form mantissa * 2^exponent: products and sums of binary floating-point
// numbers, of any magnitude, without a rounding. Slow and short; for the few decisions that no
// interval can make.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <utility>

namespace ringproof::oracle {

class Dyadic {
 public:
  Dyadic() = default;
  explicit Dyadic(double x) {  // finite
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    mantissa_ = static_cast<std::int64_t>(std::ldexp(fraction, 53));
    exponent_ = exponent - 53;
    normalise();
  }

  Dyadic operator+(const Dyadic& other) const {
    if (is_zero()) return other;
    if (other.is_zero()) return *this;
    const int least = std::min(exponent_, other.exponent_);
    return Dyadic(
        (mantissa_ << (exponent_ - least)) + (other.mantissa_ << (other.exponent_ - least)), least);
  }
  Dyadic operator*(const Dyadic& other) const {
    return Dyadic(mantissa_ * other.mantissa_, exponent_ + other.exponent_);
  }

  bool is_zero() const { return mantissa_ == 0; }
  /// One number has one form, so that equality is equality of the parts; the order is any order.
  bool operator==(const Dyadic&) const = default;
  bool operator<(const Dyadic& other) const {
    return exponent_ != other.exponent_ ? exponent_ < other.exponent_ : mantissa_ < other.mantissa_;
  }

 private:
  Dyadic(boost::multiprecision::cpp_int mantissa, int exponent)
      : mantissa_(std::move(mantissa)), exponent_(exponent) {
    normalise();
  }
  void normalise() {
    if (mantissa_ == 0) {
      exponent_ = 0;
      return;
    }
    const auto zeros = static_cast<int>(boost::multiprecision::lsb(abs(mantissa_)));
    mantissa_ >>= zeros;
    exponent_ += zeros;
  }

  boost::multiprecision::cpp_int mantissa_ = 0;  // odd, or 0
  int exponent_ = 0;
};

}  // namespace ringproof::oracle
