// The words of the judge and their exit codes (docs/verdicts.md).
#pragma once

#include <span>
#include <string_view>

namespace ringproof::oracle {

enum class Verdict { pass, fail, bad_input, undecided, suspect, skipped };

/// "PASS", "FAIL", "BAD INPUT", "UNDECIDED", "SUSPECT", "SKIPPED".
std::string_view word(Verdict);
/// 0 PASS, 1 FAIL, 2 bad input, 3 UNDECIDED, 4 SUSPECT, 77 SKIPPED.
int exit_code(Verdict);
/// The worst of several: bad input, FAIL, SUSPECT, UNDECIDED, PASS; SKIPPED only if there is no
/// other.
Verdict worst(std::span<const Verdict>);
Verdict worst(Verdict, Verdict);

}  // namespace ringproof::oracle
