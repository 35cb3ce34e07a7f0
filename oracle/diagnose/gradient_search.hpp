// Which mistakes of the backward pass explain refused gradients.
#pragma once

#include "oracle/diagnose/diagnose.hpp"
#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// Adds the classes that explain the refused ones of dq, dk, dv to `diagnosis`. A class changes
/// some of them; the others must not be refused.
void add_gradient_classes(const Subject&, const Report&, Diagnosis&);

}  // namespace ringproof::oracle
