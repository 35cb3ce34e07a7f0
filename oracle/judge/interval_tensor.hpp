// A tensor of certified intervals, and its elements rounded to a storage type where the interval
// decides that. What `ringproof truth` writes for every answer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/case/dtype.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// In canonical order. The exact element n lies in [lo[n], hi[n]]; what depends on a number that is
/// not finite holds NaN.
struct IntervalTensor {
  std::vector<double> lo, hi;
  std::vector<double>
      rounded;  // to a storage type, ties to even; NaN where undecided; may be empty

  void resize(std::int64_t elements, bool with_rounded);
  /// The ball of element n, and its rounding.
  void set(std::int64_t n, const Certified&, DType);
  /// An interval whose ends are known; decided if it is a point.
  void set(std::int64_t n, double low, double high);
  /// Elements that hold NaN in `rounded` although their interval is finite.
  std::int64_t undecided() const;
};

/// The common rounding of all numbers of the ball, if there is one.
std::optional<double> decided(DType, const Certified&);

/// The bytes of the numbers in the type.
std::vector<std::byte> encoded(DType, const std::vector<double>&);

}  // namespace ringproof::oracle
