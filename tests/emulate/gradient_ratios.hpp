// The gradients of a drawn case against the truth and the bounds of the contract, without the
// judge: the largest error over bound of each, the rounding of the stored type counted as allowed.
#pragma once

#include <map>
#include <string>

#include "tests/emulate/draw.hpp"

namespace ringproof::emulate {

struct GradientRatios {
  std::map<std::string, double> worst;  // "dq", "dk", "dv", "dbias", "dsinks"
  std::int64_t elements = 0, not_applicable = 0;
  std::string complaint;  // what exceeded its bound, empty if nothing did
};
/// Precondition: draw_gradients() returned true.
GradientRatios gradient_ratios(const Draw&);

}  // namespace ringproof::emulate
