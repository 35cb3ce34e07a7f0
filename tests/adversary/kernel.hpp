// One row of a conforming forward kernel on the tape: every operation that a contract lists is
// rounded
// by the adversary, in the places where the fields of the contract allow a rounding and nowhere
// else.
#pragma once

#include "oracle/contract/contract.hpp"
#include "tests/adversary/plan.hpp"
#include "tests/adversary/row.hpp"
#include "tests/adversary/tape.hpp"

namespace ringproof::adversary {

struct TracedRow {
  std::vector<Traced> out;  // [Dv] before the rounding of the output
  Traced lse;               // as stored
};

TracedRow run_kernel(Tape&, const oracle::Contract&, const Row&, const Plan&);

}  // namespace ringproof::adversary
