// Partial answers merged by their LSE, in binary64: the formula (10) of docs/math.md written once
// more, because the suite must not use the merge of the tier it may be judging.
#pragma once

#include "tests/suite/trial.hpp"

namespace ringproof::suite {

/// The answer over all keys from the answers over disjoint parts of them, rounded to the types the
/// answers are stored in by whoever judges it.
Answer merged(const Draft&, const std::vector<Answer>& parts);

/// Judges the merged answer as that of a kernel with so many partial results. Nothing is judged if
/// the parts were stored in a type narrower than the softmax's: no name covers that rounding.
void judge_merged(const Trial&, const Draft&, const std::vector<Answer>& parts, const Answer&);

}  // namespace ringproof::suite
