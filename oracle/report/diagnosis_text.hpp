// A diagnosis as text: the classes that explain, by name; the others only as a count, so that a
// reader who looks for a name finds no other.
#pragma once

#include <string>
#include <vector>

#include "oracle/diagnose/diagnose.hpp"
#include "oracle/diagnose/fit.hpp"
#include "oracle/diagnose/locate.hpp"
#include "oracle/diagnose/locate_gradients.hpp"

namespace ringproof::oracle {

/// A class that explains an answer, in words; several forms of one class are one of these.
struct ExplainedClass {
  std::string name;         // "NORM-AVERAGE (or ...)"
  std::string words;        // which form of it
  std::string consistency;  // "all 64 elements lie in its box"
};
std::vector<ExplainedClass> explained_classes(const Diagnosis&);
/// "31 forms refuted, 2 without a bound on these rows".
std::string refuted_text(const Diagnosis&);

/// Several lines, each ending in a newline; empty for a PASS.
std::string to_text(const Report&, const Diagnosis&);
/// Where the refused elements are, one phrase each; empty if none are refused.
std::vector<std::string> location_phrases(const Location&);
/// Whether a factor and an offset would mend them, or empty.
std::string factor_text(const Location&);
/// Both as lines.
std::string to_text(const Location&);
/// The same for one gradient.
std::vector<std::string> location_phrases(const GradientLocation&);
std::string to_text(const GradientLocation&);
/// "My kernel or my contract?": the deciding field of every refused answer, the tightest contracts
/// that accept, and what both say together with the diagnosis.
std::string to_text(const Fit&, const Diagnosis&);

}  // namespace ringproof::oracle
