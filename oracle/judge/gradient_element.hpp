// One element of a gradient: its decision, and what it would have refused.
#pragma once

#include "oracle/judge/tally.hpp"

namespace ringproof::oracle {

/// Judges the answer at this place and adds it to the tally, with the power of the element: the
/// smallest gain error that is certainly refused, and whether zero or twice the truth would pass.
void add_gradient_element(const Row&, std::int64_t column, double answer, const Certified& exact,
                          double bound, const OutputRule&, TensorTally&);

/// The same for a place whose truth could not be certified.
void add_unsure_element(const Row&, std::int64_t column, double answer, TensorTally&);

}  // namespace ringproof::oracle
