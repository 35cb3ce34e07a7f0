#include "oracle/judge/interval_tensor.hpp"

#include <cmath>
#include <limits>

#include "oracle/judge/exact_sum.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void IntervalTensor::resize(std::int64_t elements, bool with_rounded) {
  const auto count = static_cast<std::size_t>(elements);
  lo.resize(count);
  hi.resize(count);
  rounded.resize(with_rounded ? count : 0);
}

void IntervalTensor::set(std::int64_t n, const Certified& x, DType type) {
  if (!(x.radius < kInfinity)) {
    set(n, -kInfinity, kInfinity);
    return;
  }
  // The narrowest binary64 interval that holds the ball.
  set(n, down(DType::f64, exact_sum({x.hi, x.lo, -x.radius, 0})),
      up(DType::f64, exact_sum({x.hi, x.lo, x.radius, 0})));
  if (!rounded.empty()) rounded[static_cast<std::size_t>(n)] = decided(type, x).value_or(kNaN);
}

void IntervalTensor::set(std::int64_t n, double low, double high) {
  const auto at = static_cast<std::size_t>(n);
  lo[at] = low;
  hi[at] = high;
  if (!rounded.empty()) rounded[at] = low == high ? low : kNaN;
}

std::int64_t IntervalTensor::undecided() const {
  std::int64_t count = 0;
  for (std::size_t n = 0; n < rounded.size(); ++n) {
    count += std::isnan(rounded[n]) && std::isfinite(lo[n]) && std::isfinite(hi[n]);
  }
  return count;
}

std::optional<double> decided(DType type, const Certified& x) {
  if (!(x.radius < kInfinity)) return {};
  const double low = nearest(type, exact_sum({x.hi, x.lo, -x.radius, 0}));
  const double high = nearest(type, exact_sum({x.hi, x.lo, x.radius, 0}));
  if (low != high) return {};
  return low;
}

std::vector<std::byte> encoded(DType type, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t n = 0; n < values.size(); ++n) {
    encode(type, values[n], bytes.data() + n * size_of(type));
  }
  return bytes;
}

}  // namespace ringproof::oracle
