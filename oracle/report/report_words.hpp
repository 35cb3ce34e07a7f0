// The phrases of a report, said once: the text form puts them into lines, the page into paragraphs.
// Not here: the order in which a form says them, and anything about how they look.
#pragma once

#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// "[b 0, h 1, i 77, c 12]"; the column is left out if negative.
std::string place(const Row&, std::int64_t column);
/// The same for an element of any answer: "[b 0, h 1, j 77, c 12]" of dk and dv, "[h 1]" of dsinks.
std::string place(AnswerKind, const Row&, std::int64_t column);

/// The shortest decimal that reads back as the same number of the type.
std::string number(DType, double);
/// A figure of two digits.
std::string figure(double);
/// "[low, high]" as the answer is judged, or "NaN".
std::string box_text(const AnswerReport&, const Box&);
/// "64 elements in 2 rows (bf16), 3 refused": what was counted beside the elements that passed.
std::string counts_text(const AnswerReport&);
/// "rows", "keys" or "heads": what the rows of a tensor are.
std::string_view rows_word(AnswerKind);
/// What the judged rows would have refused, one phrase each; empty if nothing was judged.
std::vector<std::string> power_phrases(const Report&);
/// The same of one gradient.
std::string gradient_power_text(const TensorTally&);
/// "256 of 256; 3 escalated to interval arithmetic, up to 128 bits".
std::string rows_text(const Report&);
/// What the probabilistic level says of out.
std::string probabilistic_text(const ProbabilisticReport&);
/// The same of dq, dk and dv: a phrase each, or why there is none.
std::vector<std::string> gradient_lean_phrases(const ProbabilisticReport&);

}  // namespace ringproof::oracle
