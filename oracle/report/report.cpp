#include "oracle/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "oracle/case/words.hpp"

namespace ringproof::oracle {

namespace {

std::string element_text(const AnswerReport& answer, const Element& element) {
  return fmt::format("worst {}: {}, accepted {}, error over bound {:.3g}",
                     place(answer.kind, element.row, element.column),
                     number(answer.judged_type, element.answer), box_text(answer, element.accepted),
                     element.error_over_bound);
}

void append_answer(std::string& text, const AnswerReport& answer) {
  const auto line = [&](std::string_view what) { text += fmt::format("            {}\n", what); };
  text += fmt::format("  {:<9} {}", name(answer.kind), word(answer.verdict));
  if (!answer.reason.empty()) text += fmt::format(" ({})", answer.reason);
  text += "\n";
  const TensorTally& tally = answer.tally;
  if (tally.elements + tally.unbounded > 0) line(counts_text(answer));
  if (tally.worst_element) line(element_text(answer, *tally.worst_element));
  if (tally.worst_functional) {
    const Functional& functional = *tally.worst_functional;
    line(fmt::format("worst functional {}: {}, accepted up to {}, error over bound {:.3g}",
                     place(functional.row, -1), figure(functional.value), figure(functional.bound),
                     functional.error_over_bound()));
  }
  if (tally.not_applicable > 0) {
    line(fmt::format("not applicable on {} {}: {}", tally.not_applicable, rows_word(answer.kind),
                     tally.why_not_applicable));
  }
  if (is_gradient(answer.kind) && tally.elements > 0) line(gradient_power_text(tally));
}

}  // namespace

std::string to_text(const Report& report, const std::string& repeat) {
  std::string text = fmt::format("{}  {}", word(report.verdict), printable(report.case_name));
  if (!report.reason.empty()) text += fmt::format(" ({})", report.reason);
  text += "\n";
  for (const AnswerReport& answer : report.answers) append_answer(text, answer);
  if (report.rows_judged > 0) text += fmt::format("  rows      {}\n", rows_text(report));
  if (!report.contract_name.empty()) {
    text += fmt::format("  contract  {} ({})\n", report.contract_name, report.contract_hash);
  }
  if (const std::vector<std::string> power = power_phrases(report); !power.empty()) {
    text += fmt::format("  power     {}\n", fmt::join(power, "; "));
  }
  if (report.probabilistic) {
    text += fmt::format("  probable  {}\n", probabilistic_text(*report.probabilistic));
    for (const std::string& phrase : gradient_lean_phrases(*report.probabilistic)) {
      text += fmt::format("            {}\n", phrase);
    }
  }
  if (!repeat.empty()) text += fmt::format("  repeat    {}\n", repeat);
  return text;
}

std::string summary(std::span<const Verdict> verdicts) {
  constexpr std::array kOrder{Verdict::bad_input, Verdict::fail, Verdict::suspect,
                              Verdict::undecided, Verdict::pass, Verdict::skipped};
  std::string counts;
  for (const Verdict verdict : kOrder) {
    const auto count = std::count(verdicts.begin(), verdicts.end(), verdict);
    if (count == 0) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, word(verdict));
  }
  return fmt::format("{} cases: {}\n", verdicts.size(), counts);
}

}  // namespace ringproof::oracle
