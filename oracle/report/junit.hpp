// Reports for continuous integration: JUnit's XML, which every such service reads.
#pragma once

#include <string>
#include <vector>

#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle {

/// The text of one file: one test suite, one test case a case. FAIL and SUSPECT are failures, BAD
/// INPUT and UNDECIDED errors, SKIPPED is skipped; what the text report says is in the body. There
/// are no times: the same judgement gives the same file.
std::string to_junit(const std::vector<CaseOutcome>&);

}  // namespace ringproof::oracle
