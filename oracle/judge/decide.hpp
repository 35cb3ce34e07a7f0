// From what was counted to a word: the verdict of one answer, and what a whole report lacks.
#pragma once

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// Verdict and reason of an answer from its tally.
void decide(AnswerReport&);
/// Evidence of the probabilistic level about this answer outweighs every verdict but a refusal.
void suspect(const ProbabilisticReport&, AnswerReport&);
/// True if a gain error of this size is refused in out and in every gradient that was judged; an
/// LSE has no gain of its own.
bool has_power(const Report&, double demanded);

}  // namespace ringproof::oracle
