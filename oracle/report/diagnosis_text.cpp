// Forms of one class that all explain are one line (diagnosis_text.hpp).
#include "oracle/report/diagnosis_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringproof::oracle {

namespace {

std::string form_text(const Explanation& one) {
  std::string text = one.words;
  if (!one.lse_words.empty()) text += "; " + one.lse_words;
  if (one.open > 0) text += fmt::format("; it leaves {} of them open", one.open);
  return text;
}

/// One line a class, in the order in which classes were found.
std::string classes_text(const Diagnosis& diagnosis) {
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
  std::string text;
  for (std::size_t n = 0; n < first.size(); ++n) {
    const Explanation& one = *first[n];
    text += fmt::format("explained by {}{}: {}\n", one.id,
                        one.also.empty() ? "" : " (or " + one.also + ")", form_text(one));
    text += fmt::format("              all {} elements lie in its box", one.elements);
    if (forms[n] > 1) text += fmt::format("; so they do in {} more forms of it", forms[n] - 1);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report, const Diagnosis& diagnosis) {
  if (report.verdict != Verdict::fail) return "";
  std::string text = classes_text(diagnosis);
  if (text.empty()) {
    text = "explained by no class this build knows\n";
  } else {
    text += "  (to explain is to be consistent with it, no proof of it)\n";
  }
  text += fmt::format("  classes   {} forms refuted", diagnosis.refuted);
  if (diagnosis.without_theory > 0) {
    text += fmt::format(", {} without a bound on these rows", diagnosis.without_theory);
  }
  if (!diagnosis.not_evaluated.empty() && diagnosis.explanations.empty()) {
    text += fmt::format("; no other function was tried, {}", diagnosis.not_evaluated);
  }
  return text + "\n";
}

std::string to_text(const Location& location) {
  if (location.refused == 0) return "";
  std::string text =
      fmt::format("  where     {} of {} elements refused, in {} of {} rows\n", location.refused,
                  location.judged, location.rows_refused, location.rows_judged);
  for (const Finding& finding : location.findings) {
    text +=
        fmt::format("            only at {}: {:.3g} % of the judged, {:.3g} % of those refused\n",
                    finding.words, 100 * finding.judged_share, 100 * finding.refused_share);
  }
  if (location.findings.empty()) {
    text += "            in every head, row, column and residue alike\n";
  }
  if (location.worst && !location.along.empty()) {
    text += fmt::format("            worst row [b {}, h {}, i {}]: {}\n", location.worst->b,
                        location.worst->h, location.worst->i, location.along);
  }
  if (location.regression && location.regression->refused_by_both < location.regression->refused) {
    const Regression& r = *location.regression;
    text += fmt::format(
        "  factor    out ~ {:.6g} exact + {:.3g}: leaves {} of {} refused ({} with "
        "the best factor alone)\n",
        r.gain, r.offset, r.refused_by_both, r.refused, r.refused_by_gain);
  }
  return text;
}

namespace {

std::string answer_fit_text(const AnswerFit& answer) {
  constexpr std::size_t kShown = 4;
  std::string text = fmt::format("  {:<9} refused; ", name(answer.kind));
  if (answer.deciding.empty()) return text + "no single field of the contract decides\n";
  text += fmt::format("decided by {}\n", answer.deciding.front().field);
  for (std::size_t n = 0; n < std::min(kShown, answer.deciding.size()); ++n) {
    text += fmt::format("            {} {}\n", n == 0 ? "accepted with" : "           or",
                        answer.deciding[n].value);
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
  std::string text;
  for (const AnswerFit& answer : fit.answers) text += answer_fit_text(answer);
  constexpr std::size_t kShown = 3;
  for (std::size_t n = 0; n < std::min(kShown, fit.accepting.size()); ++n) {
    text += (n == 0 ? "  tightest  " : "  then      ") + contract_text(fit.accepting[n]);
  }
  if (fit.accepting.empty()) text += "  tightest  no preset or variant accepts\n";
  text += fmt::format("  tried     {} contracts\n", fit.tried);
  if (fit.declared.verdict != Verdict::fail) {
    return text + fmt::format("answer      neither: the declared contract says {}\n",
                              word(fit.declared.verdict));
  }
  const bool by_field = std::all_of(fit.answers.begin(), fit.answers.end(),
                                    [](const AnswerFit& one) { return !one.deciding.empty(); });
  const bool by_contract = by_field || !fit.accepting.empty();
  const bool by_mistake = diagnosis.functions > 0;
  if (by_contract && by_mistake) {
    text += "answer      either: a looser contract accepts it, and a known mistake explains it\n";
  } else if (by_contract) {
    text +=
        "answer      the contract: the kernel computes the right function, less accurately "
        "than declared\n";
  } else if (by_mistake) {
    text += "answer      the kernel: a known mistake explains it, and no contract accepts it\n";
  } else {
    text += "answer      the kernel: no contract accepts it; the mistake is none that is known\n";
  }
  return text;
}

}  // namespace ringproof::oracle
