// Mistakes of the backward pass on the tape: what a GradientRule makes of one pair, and of whole
// gradients once they are summed. Read from the rule's definition (oracle/diagnose) and from
// nothing else there. The roundings are those of a kernel that makes the mistake and conforms
// otherwise.
#pragma once

#include "oracle/diagnose/gradient_mutant.hpp"
#include "tests/adversary/backward_kernel.hpp"

namespace ringproof::adversary {

/// A pair's weight in one gradient; 1 without a function.
double weight_of(const oracle::GradientRule::Pair& counts, std::int64_t h, std::int64_t i,
                 std::int64_t j);

/// Factors, copies, sums of two gradients and other places. A coin decides whether gradients that
/// are added were stored before.
void misplace(Tape&, const oracle::Contract&, const Head&, const oracle::GradientRule&,
              bool stored_before, TracedGradients&);

}  // namespace ringproof::adversary
