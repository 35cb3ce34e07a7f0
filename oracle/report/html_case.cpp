// The part of the page that shows one case (html.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/html.hpp"
#include "oracle/report/markup.hpp"
#include "oracle/report/report_words.hpp"

namespace ringproof::oracle {

namespace {

std::string list(const std::vector<std::string>& items) {
  std::string html = "<ul>";
  for (const std::string& item : items) html += fmt::format("<li>{}</li>", escaped(item));
  return html + "</ul>\n";
}

std::string section(std::string_view title, const std::string& content) {
  return content.empty() ? "" : fmt::format("<section><h3>{}</h3>{}</section>\n", title, content);
}

/// A line from left to right: what is accepted, the exact value, the answer. An answer far outside
/// stands at the edge, and the figure beside it says how far.
std::string strip(const Element& element) {
  const double low = element.accepted.low, high = element.accepted.high;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(element.exact)) return "";
  constexpr double kLeft = 35, kRight = 65, kEdge = 2;  // percent
  const double middle = (kLeft + kRight) / 2, width = high - low;
  const auto at = [&](double x) {
    if (std::isnan(x)) return 100 - kEdge;
    const double place = width > 0  ? kLeft + (kRight - kLeft) * ((x - low) / width)
                         : x == low ? middle
                                    : (x < low ? kEdge : 100 - kEdge);
    return std::clamp(place, kEdge, 100 - kEdge);
  };
  return fmt::format(
      "<svg class=\"strip\" viewBox=\"0 0 100 20\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"The answer beside what is accepted\"><line class=\"axis\" x1=\"0\" y1=\"10\" "
      "x2=\"100\" y2=\"10\"/><rect class=\"box\" x=\"{0}\" y=\"4\" width=\"{1}\" height=\"12\"/>"
      "<line class=\"exact\" x1=\"{2:.2f}\" y1=\"2\" x2=\"{2:.2f}\" y2=\"18\"/><line "
      "class=\"answer "
      "{3}\" x1=\"{4:.2f}\" y1=\"0\" x2=\"{4:.2f}\" y2=\"20\"/></svg>",
      kLeft, kRight - kLeft, at(element.exact),
      element.decision == Decision::fail ? "refused" : "accepted", at(element.answer));
}

std::string worst_html(const AnswerReport& answer, const Element& element) {
  return fmt::format(
      "{}<dl><div><dt>worst element</dt><dd>{}</dd></div><div class=\"answer {}\"><dt>answer</dt>"
      "<dd>{}</dd></div><div class=\"box\"><dt>accepted</dt><dd>{}</dd></div><div class=\"exact\">"
      "<dt>exact</dt><dd>{:.17g}</dd></div><div><dt>error over "
      "bound</dt><dd>{:.3g}</dd></div></dl>",
      strip(element), place(answer.kind, element.row, element.column),
      element.decision == Decision::fail ? "refused" : "accepted",
      number(answer.judged_type, element.answer), box_text(answer, element.accepted), element.exact,
      element.error_over_bound);
}

std::string answer_html(const AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  std::string html =
      fmt::format("<section class=\"answer-card\"><h3>{} <span class=\"word {}\">{}</span></h3>",
                  name(answer.kind), style_class(answer.verdict), word(answer.verdict));
  if (!answer.reason.empty()) html += fmt::format("<p>{}</p>", escaped(answer.reason));
  if (tally.elements + tally.unbounded > 0) {
    html += fmt::format("<p>{}</p>", escaped(counts_text(answer)));
  }
  if (tally.worst_element) html += worst_html(answer, *tally.worst_element);
  std::vector<std::string> notes;
  if (tally.worst_functional) {
    const Functional& functional = *tally.worst_functional;
    notes.push_back(fmt::format("sum of a row's errors: worst {}, {} where {} is accepted",
                                place(functional.row, -1), figure(functional.value),
                                figure(functional.bound)));
  }
  if (tally.not_applicable > 0) {
    notes.push_back(fmt::format("not applicable on {} {}: {}", tally.not_applicable,
                                rows_word(answer.kind), tally.why_not_applicable));
  }
  if (is_gradient(answer.kind) && tally.elements > 0) notes.push_back(gradient_power_text(tally));
  return html + (notes.empty() ? "" : list(notes)) + "</section>\n";
}

std::string explanation_html(const Findings& findings) {
  const Diagnosis& diagnosis = findings.diagnosis;
  std::string html;
  for (const ExplainedClass& one : explained_classes(diagnosis)) {
    html += fmt::format(
        "<div class=\"explanation\"><h4>{}</h4><p>{}</p><p class=\"aside\">{}</p>"
        "</div>",
        escaped(one.name), escaped(one.words), escaped(one.consistency));
  }
  if (html.empty()) html = "<p>No class of the catalogue explains the answer.</p>";
  html += fmt::format("<p class=\"aside\">{}</p>", escaped(refuted_text(diagnosis)));
  std::vector<std::string> where = location_phrases(findings.location);
  if (const std::string factor = factor_text(findings.location); !factor.empty()) {
    where.push_back(factor);
  }
  for (const GradientLocation& one : findings.gradients) {
    for (std::string& phrase : location_phrases(one)) where.push_back(std::move(phrase));
  }
  return where.empty() ? html : html + "<h4>Where</h4>" + list(where);
}

std::string basis_html(const CaseOutcome& outcome) {
  const Report& report = outcome.report;
  std::vector<std::string> facts;
  if (!report.contract_name.empty()) {
    facts.push_back(fmt::format("contract {} ({})", report.contract_name, report.contract_hash));
  }
  if (report.rows_judged > 0) facts.push_back("rows judged: " + rows_text(report));
  if (report.probabilistic) {
    facts.push_back("probable: " + probabilistic_text(*report.probabilistic));
    for (const std::string& phrase : gradient_lean_phrases(*report.probabilistic)) {
      facts.push_back("probable: " + phrase);
    }
  }
  return facts.empty() ? "" : list(facts);
}

}  // namespace

std::string html_of_case(const CaseOutcome& outcome, std::size_t number, bool open) {
  std::string content;
  if (!outcome.error.empty()) content = fmt::format("<p>{}</p>\n", escaped(outcome.error));
  const Report& report = outcome.report;
  if (!report.reason.empty()) content += fmt::format("<p>{}</p>\n", escaped(report.reason));
  if (outcome.findings) content += section("Explanation", explanation_html(*outcome.findings));
  std::string answers;
  for (const AnswerReport& answer : report.answers) answers += answer_html(answer);
  if (!answers.empty()) content += fmt::format("<div class=\"answers\">{}</div>\n", answers);
  content += section("Errors", outcome.pictures);
  const std::vector<std::string> power = power_phrases(report);
  content += section("Power: what these rows would have refused", power.empty() ? "" : list(power));
  content += section("Basis", basis_html(outcome));
  if (!outcome.command.empty()) {
    content += section("Repeat", fmt::format("<pre>{}</pre>", escaped(outcome.command)));
  }
  return fmt::format(
      "<article id=\"case-{}\"><details{}><summary><h2><span class=\"word {}\">{}</span> "
      "<span class=\"name\">{}</span></h2></summary>\n{}</details></article>\n",
      number, open ? " open" : "", style_class(outcome.verdict), word(outcome.verdict),
      escaped(outcome.name), content);
}

}  // namespace ringproof::oracle
