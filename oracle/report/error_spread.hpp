// How the errors of an answer are spread: how many elements lie how far from exact, measured in
// their bounds. Judging is by each element; this only shows the distance kept or missed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

/// Bins of error over bound, four a decade, from 10^kLowest; the first also holds everything below,
/// the last everything above and infinity.
struct ErrorSpread {
  static constexpr int kLowest = -4, kBinsOfADecade = 4;
  int highest = 0;  // the last bin ends at 10^highest, at least 1
  std::vector<std::int64_t> bins;
  std::int64_t total = 0, largest = 0;

  /// Where bin n starts.
  double start(std::size_t n) const;
};

ErrorSpread error_spread(std::span<const FieldElement> elements);

}  // namespace ringproof::oracle
