// Forms of one class that all explain are one line (diagnosis_text.hpp).
#include "oracle/report/diagnosis_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/report/report_words.hpp"

namespace ringproof::oracle {

namespace {

std::string form_text(const Explanation& one) {
  std::string text = one.words;
  if (!one.lse_words.empty()) text += "; " + one.lse_words;
  if (one.open > 0) text += fmt::format("; it leaves {} of them open", one.open);
  return text;
}

}  // namespace

std::vector<ExplainedClass> explained_classes(const Diagnosis& diagnosis) {
  std::vector<const Explanation*> first;
  std::vector<std::int64_t> forms;
  for (const Explanation& one : diagnosis.explanations) {
    const auto same = [&](const Explanation* other) {
      return other->id == one.id && other->also == one.also;
    };
    const auto known = std::find_if(first.begin(), first.end(), same);
    if (known != first.end()) {
      ++forms[static_cast<std::size_t>(known - first.begin())];
      continue;
    }
    first.push_back(&one);
    forms.push_back(1);
  }
  std::vector<ExplainedClass> classes;
  for (std::size_t n = 0; n < first.size(); ++n) {
    const Explanation& one = *first[n];
    std::string consistency = fmt::format("all {} elements lie in its box", one.elements);
    if (diagnosis.sample && !one.estimated) {
      consistency = fmt::format("all {} elements of the {} rows compared lie in its box",
                                one.elements, diagnosis.sample->rows);
    }
    if (forms[n] > 1) {
      consistency += fmt::format("; so they do in {} more forms of it", forms[n] - 1);
    }
    if (one.estimated) consistency += "; its box is an estimate";
    classes.push_back({.name = one.also.empty() ? one.id : one.id + " (or " + one.also + ")",
                       .words = form_text(one),
                       .consistency = std::move(consistency)});
  }
  return classes;
}

std::string refuted_text(const Diagnosis& diagnosis) {
  std::string text = fmt::format("{} forms refuted", diagnosis.refuted);
  if (diagnosis.sample) {
    const Diagnosis::Sample& sample = *diagnosis.sample;
    text += fmt::format(", on {} of {} rows ({} of them refused)", sample.rows, sample.judged,
                        sample.refused);
  }
  if (diagnosis.without_theory > 0) {
    text += fmt::format(", {} without a bound on these rows", diagnosis.without_theory);
  }
  if (!diagnosis.not_evaluated.empty() && diagnosis.explanations.empty()) {
    text += fmt::format("; no other function was tried, {}", diagnosis.not_evaluated);
  }
  return text;
}

std::string to_text(const Report& report, const Diagnosis& diagnosis) {
  if (report.verdict != Verdict::fail) return "";
  std::string text;
  for (const ExplainedClass& one : explained_classes(diagnosis)) {
    text += fmt::format("explained by {}: {}\n              {}\n", one.name, one.words,
                        one.consistency);
  }
  if (text.empty()) {
    text = "explained by no class this build knows\n";
  } else {
    text += "  (to explain is to be consistent with it, no proof of it)\n";
  }
  return text + fmt::format("  classes   {}\n", refuted_text(diagnosis));
}

namespace {

void add_findings(const std::vector<Finding>& findings, std::vector<std::string>& phrases) {
  for (const Finding& finding : findings) {
    phrases.push_back(fmt::format("only at {}: {:.3g} % of the elements, {:.3g} % of these refused",
                                  finding.words, 100 * finding.judged_share,
                                  100 * finding.refused_share));
  }
  if (findings.empty()) phrases.push_back("not confined to few heads, rows, columns or residues");
}

std::string lines(const std::vector<std::string>& phrases) {
  std::string text;
  for (const std::string& phrase : phrases) {
    text += fmt::format("{}{}\n", text.empty() ? "  where     " : "            ", phrase);
  }
  return text;
}

}  // namespace

std::vector<std::string> location_phrases(const GradientLocation& location) {
  std::vector<std::string> phrases{
      fmt::format("{}: {} of {} elements refused, in {} of {} {}", name(location.kind),
                  location.refused, location.judged, location.places_refused,
                  location.places_judged, location.kind == AnswerKind::dq ? "rows" : "keys")};
  add_findings(location.findings, phrases);
  return phrases;
}

std::string to_text(const GradientLocation& location) { return lines(location_phrases(location)); }

std::vector<std::string> location_phrases(const Location& location) {
  if (location.refused == 0) return {};
  std::vector<std::string> phrases{fmt::format("{} of {} elements refused, in {} of {} rows",
                                               location.refused, location.judged,
                                               location.rows_refused, location.rows_judged)};
  add_findings(location.findings, phrases);
  if (location.worst && !location.along.empty()) {
    phrases.push_back(fmt::format("worst row {}: {}", place(*location.worst, -1), location.along));
  }
  return phrases;
}

std::string to_text(const Location& location) {
  std::string text = lines(location_phrases(location));
  if (const std::string factor = factor_text(location); !factor.empty()) {
    text += fmt::format("  factor    {}\n", factor);
  }
  return text;
}

std::string factor_text(const Location& location) {
  if (!location.regression) return "";
  const Regression& r = *location.regression;
  if (location.refused == 0 || r.refused_by_both >= r.refused) return "";
  return fmt::format(
      "out ~ {:.6g} exact + {:.3g}: leaves {} of {} refused ({} with the best factor alone)",
      r.gain, r.offset, r.refused_by_both, r.refused, r.refused_by_gain);
}

namespace {

std::string answer_fit_text(const AnswerFit& answer) {
  constexpr std::size_t kShown = 4;
  std::string text = fmt::format("  {:<9} refused; ", name(answer.kind));
  if (answer.deciding.empty()) return text + "no single field of the contract decides\n";
  text += fmt::format("decided by {}\n", answer.deciding.front().field);
  for (std::size_t n = 0; n < std::min(kShown, answer.deciding.size()); ++n) {
    const FieldChange& change = answer.deciding[n];
    text += fmt::format("            {} {} (bounds {:.3g} x{})\n",
                        n == 0 ? "accepted with" : "           or", change.value, change.widens,
                        change.elsewhere ? "" : "; no contract of a known kernel declares it");
  }
  return text;
}

std::string contract_text(const FittedContract& one) {
  std::string text =
      fmt::format("{} ({}), bounds {:.3g} x the declared", one.contract, one.hash, one.allows);
  constexpr std::size_t kShown = 3;
  for (std::size_t n = 0; n < std::min(kShown, one.differs.size()); ++n) {
    text += fmt::format("{} {} {}", n == 0 ? ":" : ",", one.differs[n].field, one.differs[n].value);
  }
  if (one.differs.size() > kShown) {
    text += fmt::format(", {} more fields", one.differs.size() - kShown);
  }
  return text + "\n";
}

}  // namespace

std::string to_text(const Fit& fit, const Diagnosis& diagnosis) {
  if (fit.declared.answers.empty()) {
    return fmt::format("answer      nothing to fit: {}\n", fit.declared.reason);
  }
  std::string text;
  for (const AnswerFit& answer : fit.answers) text += answer_fit_text(answer);
  constexpr std::size_t kShown = 3;
  for (std::size_t n = 0; n < std::min(kShown, fit.accepting.size()); ++n) {
    text += (n == 0 ? "  tightest  " : "  then      ") + contract_text(fit.accepting[n]);
  }
  if (fit.accepting.empty() && renamed(fit)) {
    text += fmt::format("  tightest  the declared one with {}\n",
                        fit.answers.front().deciding.front().value);
  } else if (fit.accepting.empty()) {
    text += "  tightest  no preset or variant accepts\n";
  }
  text += fmt::format("  tried     {} contracts\n", fit.tried);
  if (fit.declared.verdict != Verdict::fail) {
    return text + fmt::format("answer      neither: the declared contract says {}\n",
                              word(fit.declared.verdict));
  }
  if (renamed(fit)) {
    return text + fmt::format(
                      "answer      either: nothing is less accurate than declared, but the lse is "
                      "in another base\n            (LSE-BASE); with {} it is accepted\n",
                      fit.answers.front().deciding.front().value);
  }
  const bool by_contract = loosened(fit);
  const bool by_mistake = diagnosis.functions > 0;
  if (by_contract && by_mistake) {
    text += "answer      either: a looser contract accepts it, and a known mistake explains it\n";
  } else if (by_contract) {
    text +=
        "answer      a looser contract accepts it: less accurate than declared, or a mistake as "
        "small as that\n";
  } else if (const auto arithmetic = static_cast<std::size_t>(diagnosis.functions);
             arithmetic < diagnosis.explanations.size()) {
    const Explanation& one = diagnosis.explanations[arithmetic];
    text += fmt::format(
        "answer      {}arithmetic less accurate than a single field or a name declares: {}, {}\n",
        by_mistake ? "a known mistake, or " : "", one.id, one.words);
  } else if (by_mistake) {
    text += "answer      the kernel: a known mistake explains it, and no contract accepts it\n";
  } else {
    text +=
        "answer      the kernel: no contract accepts it, and no single known mistake explains it\n";
  }
  return text;
}

}  // namespace ringproof::oracle
