// The run in low precision that some rules measure against: eager attention in which every
// intermediate tensor is stored in the type of the inputs. Sums are exact to binary64, so that
// only the stores err, as on hardware with wide accumulators.
#pragma once

#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// out of one row; zeros where nothing is visible.
std::vector<double> low_precision_row(const Problem&, std::int64_t b, std::int64_t h,
                                      std::int64_t i);  // [Dv]

}  // namespace ringproof::oracle
