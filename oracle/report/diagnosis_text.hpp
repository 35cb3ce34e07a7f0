// A diagnosis as text: the classes that explain, by name; the others only as a count, so that a
// reader who looks for a name finds no other.
#pragma once

#include <string>

#include "oracle/diagnose/diagnose.hpp"
#include "oracle/diagnose/fit.hpp"
#include "oracle/diagnose/locate.hpp"

namespace ringproof::oracle {

/// Several lines, each ending in a newline; empty for a PASS.
std::string to_text(const Report&, const Diagnosis&);
/// Where the refused elements are, and whether a factor and an offset would mend them.
std::string to_text(const Location&);
/// "My kernel or my contract?": the deciding field of every refused answer, the tightest contracts
/// that accept, and what both say together with the diagnosis.
std::string to_text(const Fit&, const Diagnosis&);

}  // namespace ringproof::oracle
