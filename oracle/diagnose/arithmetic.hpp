// Mistakes of arithmetic: numbers kept in fewer digits than the contract declares, or an
// exponential less accurate than that. They are other contracts, not other functions
// (docs/contract.md, section 8): the class explains the answer if check() accepts it under the
// looser contract, with power.
#pragma once

#include "oracle/diagnose/diagnose.hpp"

namespace ringproof::oracle {

/// Adds the classes that explain to `diagnosis`, behind those that are there.
void add_arithmetic(const Case&, const Contract&, const CheckOptions&, const Report&, Diagnosis&);

}  // namespace ringproof::oracle
