// A report as text: the word, the worst element, the contract, the power, the command that repeats
// it.
#pragma once

#include <span>
#include <string>

#include "oracle/report/report_words.hpp"

namespace ringproof::oracle {

/// Several lines, each ending in a newline. `repeat` is the command that repeats the judgement.
std::string to_text(const Report&, const std::string& repeat);

/// "4 cases: 2 PASS, 1 FAIL, 1 SKIPPED" and a newline, in the order of the words' severity.
std::string summary(std::span<const Verdict>);

}  // namespace ringproof::oracle
