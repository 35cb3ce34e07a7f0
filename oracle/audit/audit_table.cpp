// Audits in words: one report, and the table of the public rules.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "oracle/audit/audit.hpp"
#include "oracle/generate/suite.hpp"

namespace ringproof::oracle {
namespace {

std::string number(double value) {
  if (std::isinf(value)) return "inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

struct ByClass {
  int forms = 0, accepted = 0, open = 0;
  double least = HUGE_VAL;  // smallest ratio
  bool refused() const { return accepted + open == 0; }
};

std::map<std::string, ByClass> by_class(const AuditReport& report) {
  std::map<std::string, ByClass> classes;
  for (const RuleFinding& finding : report.findings) {
    ByClass& one = classes[finding.id];
    ++one.forms;
    one.accepted += finding.accepted();
    one.open += finding.open();
    one.least = std::min(one.least, finding.ratio);
  }
  return classes;
}

/// "dq, dk, dv": what the rule compares and no mistake of the forward pass was asked for.
std::string not_computed(const RuleFinding& finding) {
  std::string words;
  for (const AnswerKind kind : finding.not_computed) {
    words.append(words.empty() ? "" : ", ").append(name(kind));
  }
  return words;
}

/// ": ratio R", and what is not computed where that leaves it open.
std::string ratio_in_words(const RuleFinding& finding) {
  const std::string ratio = ": ratio " + number(finding.ratio);
  return finding.open() ? ratio + ", " + not_computed(finding) + " not computed" : ratio;
}

/// "ID", or "ID n/m" where some forms alone are meant.
std::string some_of(const std::string& id, int some, int forms) {
  return some == forms ? id : id + " " + std::to_string(some) + "/" + std::to_string(forms);
}

std::string inputs_in_words(const Rule& rule) {
  const Recipe& r = rule.inputs.recipe;
  const char* kinds[] = {"normal", "uniform [0, 1)", "normal, clamped to [-1, 1]"};
  std::string words =
      std::string(name(r.dtype)) + " " + kinds[static_cast<std::size_t>(rule.inputs.distribution)];
  if (rule.inputs.factor != 1) words += " times " + number(rule.inputs.factor);
  words += ", " + std::to_string(r.queries) + " × " + std::to_string(r.keys) + ", D " +
           std::to_string(r.head_dim);
  if (r.spec.causal != Causal::none) words += ", causal";
  if (rule.inputs.upstream_ones) words += ", dout 1";
  if (rule.inputs.ranks > 1) words += ", " + std::to_string(rule.inputs.ranks) + " ranks";
  return words;
}

std::string condition_in_words(const Comparison& one) {
  switch (one.kind) {
    case Comparison::Kind::close: {
      std::string words = "atol " + number(one.atol) + ", rtol " + number(one.rtol);
      if (one.fraction > 0) words += ", but for " + number(100 * one.fraction) + " %";
      return words;
    }
    case Comparison::Kind::error_ratio:
      return number(one.factor) + " × the error of an eager run" +
             (one.atol > 0 ? " + " + number(one.atol) : "");
    case Comparison::Kind::cosine:
      return "1 − cosine at most " + number(one.limit);
    case Comparison::Kind::rmse:
      return "RMSE at most " + number(one.limit);
    case Comparison::Kind::nmse:
      break;
  }
  return "NMSE at most " + number(one.limit);
}

/// Tensors with the same conditions are named together.
std::string rule_in_words(const Rule& rule) {
  std::vector<std::pair<std::string, std::string>> groups;  // conditions, tensors
  for (const auto& [kind, comparisons] : rule.compares) {
    std::string conditions;
    for (const Comparison& one : comparisons) {
      conditions += (conditions.empty() ? "" : " and ") + condition_in_words(one);
    }
    const std::string tensor(name(kind));
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == conditions; });
    if (same == groups.end()) {
      groups.emplace_back(conditions, tensor);
    } else {
      same->second += ", " + tensor;
    }
  }
  std::string words;
  for (const auto& [conditions, tensors] : groups) {
    words += (words.empty() ? "" : "; ") + tensors + ": " + conditions;
  }
  return words;
}

}  // namespace

std::string to_text(const AuditReport& report) {
  std::string text = report.rule + ": " + std::to_string(report.rows) + " of " +
                     std::to_string(report.rows_total) +
                     " rows; the ratio is measured over allowed\n";
  const auto line = [&](const RuleFinding& finding) {
    const char* verdict = finding.open()       ? "leaves open "
                          : finding.accepted() ? "accepts "
                                               : "refuses ";
    text += std::string("  ") + verdict + finding.words + ratio_in_words(finding) + "\n";
  };
  line(report.exact);
  for (const RuleFinding& finding : report.made_up) line(finding);
  for (const auto& [id, one] : by_class(report)) {
    text += "  " + id + ": accepts " + std::to_string(one.accepted) + " of " +
            std::to_string(one.forms) + " forms, " +
            (one.open > 0 ? "leaves open " + std::to_string(one.open) + ", " : "") +
            "smallest ratio " + number(one.least) + "\n";
  }
  for (const RuleFinding& finding : report.findings) {
    if (finding.refused()) continue;
    text += "    " + finding.id + ": " + finding.words + ratio_in_words(finding) + "\n";
  }
  return text;
}

namespace {

/// Gradients cost the square of the sequence; on a shorter one they are larger, so that what a rule
/// accepts here it accepts there.
constexpr std::int64_t kShorter = 4;

/// "  HEAD: words", broken between words at 100 columns, continued under the words.
std::string wrapped(const std::string& head, const std::string& words) {
  constexpr std::size_t kColumns = 100;
  std::string text, line = "  " + head + ":";
  for (std::size_t first = 0; first < words.size();) {
    const std::size_t last = std::min(words.find(' ', first), words.size());
    if (line.size() + 1 + last - first > kColumns) {
      text += line + "\n";
      line = "   ";
    }
    line.append(" ").append(words, first, last - first);
    first = last + 1;
  }
  return text + line + "\n";
}

std::string source_in_words(const Rule& rule) {
  constexpr std::size_t kDigits = 12;  // of a commit
  std::string words = rule.project + " " + rule.file + " at " + rule.version.substr(0, kDigits);
  return rule.note.empty() ? words : words + "; " + rule.note;
}

/// One rule of the table.
std::string entry(const Rule& rule, const AuditReport& report) {
  std::string in_full, in_part, open, refused, made_up;
  const auto add = [](std::string& to, const std::string& words) {
    to.append(to.empty() ? "" : ", ").append(words);
  };
  for (const auto& [id, one] : by_class(report)) {
    if (one.accepted > 0) {
      add(one.accepted == one.forms ? in_full : in_part, some_of(id, one.accepted, one.forms));
    }
    if (one.open > 0) add(open, some_of(id, one.open, one.forms));
    if (one.refused()) add(refused, id + " (" + number(one.least) + ")");
  }
  for (const RuleFinding& one : report.made_up) {
    const char* verdict = one.open() ? ": open (" : one.accepted() ? ": accepted (" : ": refused (";
    add(made_up, one.words + verdict + number(one.ratio) + ")");
  }
  const auto or_none = [](const std::string& words) { return words.empty() ? "none" : words; };
  std::string text = rule.name + "\n";
  if (!rule.project.empty()) text += wrapped("source", source_in_words(rule));
  text += wrapped("condition", rule_in_words(rule));
  text += wrapped("inputs", inputs_in_words(rule));
  text += wrapped("accepts in full", or_none(in_full));
  text += wrapped("accepts in part", or_none(in_part));
  if (rule.compares_gradients()) text += wrapped("leaves open", or_none(open));
  text += wrapped("refuses", or_none(refused));
  text += wrapped("made up", made_up);
  if (report.exact.refused()) text += wrapped("exact answer, rounded", "refused");
  return text;
}

}  // namespace

std::string audit_table(const AuditOptions& options) {
  std::string table;
  for (const Rule& rule : public_rules()) {
    const GeneratedCase inputs = rule_inputs(rule, 1);
    const Contract contract =
        read_contract(contracts_of(inputs.recipe.dtype).front(), inputs.recipe.spec);
    const Case problem = inputs.as_case();
    AuditReport report = audit(problem, contract, rule, options);
    if (rule.compares_gradients()) {
      const GeneratedCase shorter = rule_inputs(rule, 1, kShorter);
      const Case backward = shorter.as_case();
      AuditOptions first = options;
      first.forms_per_class = 3;  // dq, dk and dv of zero are three
      audit_gradients(backward, contract, rule, first, report);
    }
    if (!table.empty()) table.push_back('\n');
    table += entry(rule, report);
  }
  return table;
}

}  // namespace ringproof::oracle
