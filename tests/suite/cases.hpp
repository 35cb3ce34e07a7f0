// A kernel on problems that lie in case files, such as `ringproof gen` writes: it answers each, and
// the judge decides. No law, no shrinking; laws are suite.hpp's.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "tests/suite/probe.hpp"
#include "tests/suite/suite.hpp"

namespace ringproof::suite {

/// The problem of a case file as a draft, its numbers in the types of the contract. What the kernel
/// cannot be asked for is left out: gradients without support for them, the ring where the contract
/// takes none. Throws oracle::BadInput for a file that is no problem, NumbersDoNotFit for numbers
/// that the types do not hold.
struct NumbersDoNotFit {
  std::string why;
};
Draft read_draft(const std::string& path, const Trial&);

/// Runs the kernel on every case file and folder of case files, and writes a line for each. An
/// answer that is refused lies as a case file in the folder of the options. The exit code: 0 PASS,
/// 1 FAIL, 3 UNDECIDED, 77 SKIPPED. Throws oracle::BadInput if there is no case file.
int run_cases(Trial&, const std::vector<std::string>& paths, const SuiteOptions&, std::ostream&,
              const Probed&);

}  // namespace ringproof::suite
