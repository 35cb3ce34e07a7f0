// A report as text: the word, the worst element, the contract, the power, the command that repeats
// it.
#pragma once

#include <span>
#include <string>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// "[b 0, h 1, i 77, c 12]"; the column is left out if negative.
std::string place(const Row&, std::int64_t column);

/// The same for an element of any answer: "[b 0, h 1, j 77, c 12]" of dk and dv, "[h 1]" of dsinks.
std::string place(AnswerKind, const Row&, std::int64_t column);

/// Several lines, each ending in a newline. `repeat` is the command that repeats the judgement.
std::string to_text(const Report&, const std::string& repeat);

/// "4 cases: 2 PASS, 1 FAIL, 1 SKIPPED" and a newline, in the order of the words' severity.
std::string summary(std::span<const Verdict>);

}  // namespace ringproof::oracle
