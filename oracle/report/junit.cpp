#include "oracle/report/junit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/markup.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle {

namespace {

/// The element that says how a test case ended; a passed one has none.
std::string_view element_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail:
    case Verdict::suspect:
      return "failure";
    case Verdict::bad_input:
    case Verdict::undecided:
      return "error";
    case Verdict::skipped:
      return "skipped";
    case Verdict::pass:
      break;
  }
  return {};
}

/// One line, which services show in their lists.
std::string message(const CaseOutcome& outcome) {
  if (!outcome.error.empty()) return outcome.error;
  for (const AnswerReport& answer : outcome.report.answers) {
    if (answer.verdict != outcome.verdict) continue;
    std::string text = fmt::format("{}: {}", name(answer.kind), word(answer.verdict));
    if (!answer.reason.empty()) text += fmt::format(" ({})", answer.reason);
    if (answer.verdict == Verdict::fail && answer.tally.worst_element) {
      const Element& worst = *answer.tally.worst_element;
      text += fmt::format(", worst {} error over bound {:.3g}",
                          place(answer.kind, worst.row, worst.column), worst.error_over_bound);
    }
    return text + ", contract " + outcome.report.contract_name;
  }
  return outcome.report.reason.empty() ? std::string(word(outcome.verdict)) : outcome.report.reason;
}

std::string body(const CaseOutcome& outcome) {
  if (!outcome.error.empty()) return outcome.error + "\n";
  std::string text = to_text(outcome.report, outcome.command);
  if (!outcome.findings) return text;
  text += to_text(outcome.report, outcome.findings->diagnosis);
  text += to_text(outcome.findings->location);
  for (const GradientLocation& one : outcome.findings->gradients) text += to_text(one);
  return text;
}

std::string test_case(const CaseOutcome& outcome) {
  const std::string& contract = outcome.report.contract_name;
  const std::string class_name =
      contract.empty() ? "ringproof" : fmt::format("ringproof.{}", escaped(contract));
  std::string xml = fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", class_name,
                                escaped(outcome.name));
  const std::string_view element = element_of(outcome.verdict);
  if (element.empty()) {
    xml += fmt::format("      <system-out>{}</system-out>\n", escaped(body(outcome)));
  } else if (outcome.verdict == Verdict::skipped) {
    xml += fmt::format("      <skipped message=\"{}\"/>\n", escaped(message(outcome)));
  } else {
    xml += fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", element,
                       word(outcome.verdict), escaped(message(outcome)), escaped(body(outcome)));
  }
  return xml + "    </testcase>\n";
}

}  // namespace

std::string to_junit(const std::vector<CaseOutcome>& outcomes) {
  const auto count = [&](std::string_view element) {
    return std::count_if(outcomes.begin(), outcomes.end(), [&](const CaseOutcome& outcome) {
      return element_of(outcome.verdict) == element;
    });
  };
  std::string cases;
  for (const CaseOutcome& outcome : outcomes) cases += test_case(outcome);
  const std::string counts =
      fmt::format("name=\"ringproof\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                  outcomes.size(), count("failure"), count("error"), count("skipped"));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0}>\n{1}"
      "  </testsuite>\n</testsuites>\n",
      counts, cases);
}

}  // namespace ringproof::oracle
