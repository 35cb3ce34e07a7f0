// Special functions of an emulated kernel: the exact value in wider arithmetic, an error of at most
// the
// declared size in the chosen direction, one rounding to the working type. Errors in Numerics are
// what is
// left of the declared ones after that rounding.
#pragma once

#include <xmmintrin.h>

#include <cmath>
#include <random>
#include <type_traits>

#include "tests/emulate/numerics.hpp"

namespace ringproof::emulate {

/// Flush to zero and denormals are zero, restored at the end of the scope.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool on) : saved_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    if (on) _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushSubnormals() { _mm_setcsr(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned saved_;
};

template <class Real>
class Functions {
 public:
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

  Functions(const Numerics& numerics, std::uint64_t seed) : numerics_(numerics), random_(seed) {}

  Real exp(Real x) { return exponential(x, std::exp(static_cast<Wide>(x))); }
  Real exp2(Real x) { return exponential(x, std::exp2(static_cast<Wide>(x))); }
  Real log(Real x) { return logarithm(std::log(static_cast<Wide>(x))); }
  Real log2(Real x) { return logarithm(std::log2(static_cast<Wide>(x))); }
  Real log1p(Real x) { return logarithm(std::log1p(static_cast<Wide>(x))); }
  Real tanh(Real x) { return inexact(std::tanh(static_cast<Wide>(x)), numerics_.tanh_error); }
  Real sigmoid(Real x) {
    return inexact(1 / (1 + std::exp(-static_cast<Wide>(x))), numerics_.sigmoid_error);
  }
  /// A quotient as the kernel forms it: one division, or a reciprocal and a product.
  Real divide(Real a, Real b) {
    if (!numerics_.reciprocal) return inexact(static_cast<Wide>(a) / b, numerics_.divide_error);
    return a * inexact(1 / static_cast<Wide>(b), numerics_.divide_error);
  }

  std::mt19937_64& random() { return random_; }

 private:
  Real exponential(Real x, Wide exact) {
    if (x == 0 && !numerics_.exp_zero_noisy) return 1;
    return inexact(exact, numerics_.exp_error);
  }
  Real logarithm(Wide exact) {
    return inexact(exact + numerics_.log_absolute * direction(), numerics_.log_error);
  }
  Real inexact(Wide exact, double error) {
    return static_cast<Real>(exact * (1 + static_cast<Wide>(error * direction())));
  }
  double direction() {
    switch (numerics_.noise) {
      case Noise::none:
        return 0;
      case Noise::up:
        return 1;
      case Noise::down:
        return -1;
      case Noise::random:
        break;
    }
    return std::uniform_real_distribution<double>(-1, 1)(random_);
  }

  const Numerics& numerics_;
  std::mt19937_64 random_;
};

}  // namespace ringproof::emulate
