// Certified kills of mistakes in the backward pass: (37) of docs/contract.md for dq, dk and dv.
// Such a mistake is another upstream gradient, or another place for the right numbers, so its boxes
// are those of the exact gradients of that, with their own bounds.
#pragma once

#include <vector>

#include "oracle/generate/certified_kills.hpp"

namespace ringproof::oracle {

/// Outcomes of all wanted forms; empty for a case without dout and dlse.
std::vector<FormOutcome> gradient_kills(const GeneratedCase&, const Contract&,
                                        const WantsForm& wants);

}  // namespace ringproof::oracle
