// Reports as JSON for other programs; docs/formats.md describes the fields and names their schema.
#pragma once

#include <string>
#include <vector>

#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle {

/// The text of one report file: indented, keys sorted, ending in a newline. A number that JSON does
/// not have is one of the words "inf", "-inf", "nan".
std::string to_json(const std::vector<CaseOutcome>&);

}  // namespace ringproof::oracle
