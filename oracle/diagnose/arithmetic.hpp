// Mistakes of arithmetic: numbers kept in fewer digits than the contract declares, or an
// exponential less accurate than that. They are other contracts, not other functions
// (docs/contract.md, section 8): the class explains the answer if it is accepted under the looser
// contract, with power.
#pragma once

#include "oracle/diagnose/compared_rows.hpp"
#include "oracle/diagnose/diagnose.hpp"

namespace ringproof::oracle {

/// Adds the classes that explain to `diagnosis`, behind those that are there. `worst`: rows that
/// refute nearly every contract.
void add_arithmetic(const Case&, const Contract&, const CheckOptions&, const Report&,
                    const std::vector<Row>& worst, const ComparedRows&, Diagnosis&);

}  // namespace ringproof::oracle
