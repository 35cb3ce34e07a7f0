#include "oracle/report/html.hpp"

#include <fmt/format.h>

#include "oracle/report/html_style.hpp"
#include "oracle/report/markup.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle {

namespace {

/// What the word of the whole run says, in one sentence.
std::string_view meaning(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "Every judged number is within its derived bound of the exact answer.";
    case Verdict::fail:
      return "At least one answer is none that a kernel of its declared contract can give, "
             "whatever its order of operations.";
    case Verdict::bad_input:
      return "At least one file has no meaning as a case; nothing is said about its kernel.";
    case Verdict::undecided:
      return "At least one answer is neither proved right nor proved wrong.";
    case Verdict::suspect:
      return "Within every bound, yet further off than roundings to nearest are likely to be.";
    case Verdict::skipped:
      break;
  }
  return "There was nothing to judge.";
}

/// The largest error over bound of any answer, for the table of contents.
std::string worst_ratio(const Report& report) {
  double most = -1;
  for (const AnswerReport& answer : report.answers) {
    if (answer.tally.worst_element) {
      most = std::max(most, answer.tally.worst_element->error_over_bound);
    }
  }
  return most < 0 ? "" : fmt::format("{:.3g}", most);
}

std::string contents(const std::vector<CaseOutcome>& outcomes) {
  std::string rows;
  for (std::size_t n = 0; n < outcomes.size(); ++n) {
    const CaseOutcome& one = outcomes[n];
    rows += fmt::format(
        "<tr><td><span class=\"word {}\">{}</span></td><td class=\"name\"><a href=\"#case-{}\">{}"
        "</a></td><td>{}</td><td class=\"figure\">{}</td></tr>\n",
        style_class(one.verdict), word(one.verdict), n + 1, escaped(one.name),
        escaped(one.report.contract_name), worst_ratio(one.report));
  }
  return fmt::format(
      "<nav aria-label=\"Cases\"><table class=\"contents\"><thead><tr><th>verdict</th><th>case</th>"
      "<th>contract</th><th class=\"figure\">worst error over bound</th></tr></thead>\n<tbody>{}"
      "</tbody></table></nav>\n",
      rows);
}

}  // namespace

std::string_view style_class(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::bad_input:
      return "bad-input";
    case Verdict::undecided:
      return "undecided";
    case Verdict::suspect:
      return "suspect";
    case Verdict::skipped:
      break;
  }
  return "skipped";
}

std::string to_html(const std::vector<CaseOutcome>& outcomes, const std::string& version) {
  std::vector<Verdict> verdicts;
  std::string articles;
  for (std::size_t n = 0; n < outcomes.size(); ++n) {
    verdicts.push_back(outcomes[n].verdict);
    // What needs a reader is open, and so is a case that is alone.
    const Verdict one = outcomes[n].verdict;
    const bool open = (one != Verdict::pass && one != Verdict::skipped) || outcomes.size() == 1;
    articles += html_of_case(outcomes[n], n + 1, open);
  }
  const Verdict verdict = worst(verdicts);
  const std::string counts = outcomes.size() == 1 ? outcomes.front().name : summary(verdicts);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{0} · {1}</title>\n<style>{2}</style>\n</head>\n"
      "<body>\n<header class=\"{3}\"><p class=\"brand\">ringproof report</p>\n"
      "<h1>{0}</h1>\n<p class=\"counts\">{1}</p>\n<p class=\"meaning\">{4}</p></header>\n"
      "<main>\n{5}{6}</main>\n<footer><p>Written by ringproof {7}. An error over bound of at most "
      "1 "
      "is accepted; the bound is derived from the contract for each element, not chosen. FAIL and "
      "PASS are proofs; to explain is to be consistent with a mistake, no proof of it.</p></footer>"
      "\n</body>\n</html>\n",
      word(verdict), escaped(counts), html_style, style_class(verdict), meaning(verdict),
      outcomes.size() > 1 ? contents(outcomes) : "", articles, escaped(version));
}

}  // namespace ringproof::oracle
