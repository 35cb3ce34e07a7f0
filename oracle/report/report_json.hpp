// Reports as JSON for other programs; the fields are described in docs/verdicts.md.
#pragma once

#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// One judged case: its report, or what was wrong with its files.
struct CaseOutcome {
  std::string name;
  Verdict verdict = Verdict::skipped;
  Report report{};        // nothing, if there is an error
  std::string error{};    // of bad input
  std::string command{};  // that repeats the judgement
};

/// The text of one report file: indented, keys sorted, ending in a newline. A number that JSON does
/// not have is one of the words "inf", "-inf", "nan".
std::string to_json(const std::vector<CaseOutcome>&);

}  // namespace ringproof::oracle
