#include "oracle/report/error_spread.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

constexpr int kMostDecades = 8;  // beyond the bound

}  // namespace

double ErrorSpread::start(std::size_t n) const {
  return std::pow(10.0, kLowest + static_cast<double>(n) / kBinsOfADecade);
}

ErrorSpread error_spread(std::span<const FieldElement> elements) {
  double most = 1;
  for (const FieldElement& element : elements) {
    if (!std::isnan(element.ratio)) most = std::max(most, double{element.ratio});
  }
  ErrorSpread result;
  result.highest =
      static_cast<int>(std::clamp(std::ceil(std::log10(most)), 1.0, 1.0 * kMostDecades));
  const int bins = (result.highest - ErrorSpread::kLowest) * ErrorSpread::kBinsOfADecade;
  result.bins.assign(static_cast<std::size_t>(bins), 0);
  for (const FieldElement& element : elements) {
    if (std::isnan(element.ratio)) continue;
    const double place =
        ErrorSpread::kBinsOfADecade *
        (std::log10(std::max(1e-300, double{element.ratio})) - ErrorSpread::kLowest);
    // An accepted element stays left of the bound and a refused one right of it, ties included.
    const int bound = -ErrorSpread::kLowest * ErrorSpread::kBinsOfADecade;
    const double least = element.refused ? bound : 0,
                 highest = element.refused ? bins - 1 : bound - 1;
    ++result.bins[static_cast<std::size_t>(std::clamp(std::floor(place), least, highest))];
    ++result.total;
  }
  result.largest = *std::max_element(result.bins.begin(), result.bins.end());
  return result;
}

}  // namespace ringproof::oracle
