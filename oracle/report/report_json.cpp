#include "oracle/report/report_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ringproof::oracle {

namespace {

using Json = nlohmann::json;

Json number(double x) {
  if (std::isfinite(x)) return x;
  if (std::isnan(x)) return "nan";
  return x > 0 ? "inf" : "-inf";
}

std::string_view decision_word(Decision decision) {
  switch (decision) {
    case Decision::pass:
      return "accepted";
    case Decision::fail:
      return "refused";
    case Decision::unsure:
      break;
  }
  return "undecided";
}

/// Indices by the names that the text report gives them.
Json place_json(AnswerKind kind, const Row& row, std::int64_t column) {
  switch (kind) {
    case AnswerKind::lse:
      return {{"b", row.b}, {"h", row.h}, {"i", row.i}};
    case AnswerKind::dk:
    case AnswerKind::dv:
      return {{"b", row.b}, {"h", row.h}, {"j", row.i}, {"c", column}};
    case AnswerKind::dbias:
      return {{"b", row.b}, {"h", row.h}, {"i", row.i}, {"j", column}};
    case AnswerKind::dsinks:
      return {{"h", row.h}};
    default:
      return {{"b", row.b}, {"h", row.h}, {"i", row.i}, {"c", column}};
  }
}

Json element_json(AnswerKind kind, const Element& element) {
  return {{"at", place_json(kind, element.row, element.column)},
          {"answer", number(element.answer)},
          {"exact", number(element.exact)},
          {"accepted", {number(element.accepted.low), number(element.accepted.high)}},
          {"error_over_bound", number(element.error_over_bound)},
          {"decision", decision_word(element.decision)}};
}

Json functional_json(const Functional& functional) {
  return {{"at", {{"b", functional.row.b}, {"h", functional.row.h}, {"i", functional.row.i}}},
          {"value", number(functional.value)},
          {"bound", number(functional.bound)},
          {"decision", decision_word(functional.decision)}};
}

Json vacuity_json(const Vacuity& vacuity) {
  return {{"differ", vacuity.differ},
          {"pass", vacuity.pass},
          {"functional_refuses", vacuity.functional_refuses}};
}

Json answer_json(const AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  Json json{{"answer", name(answer.kind)},
            {"verdict", word(answer.verdict)},
            {"judged_type", name(answer.judged_type)},
            {"rows", tally.rows},
            {"elements", tally.elements},
            {"refused", tally.failed},
            {"undecided", tally.undecided},
            {"functionals_refused", tally.functional_failed},
            {"functionals_undecided", tally.functional_undecided},
            {"not_applicable", tally.not_applicable},
            {"unconstrained", tally.unconstrained},
            {"unbounded", tally.unbounded},
            {"would_pass",
             {{"zeros", vacuity_json(tally.zeros)},
              {"mean", vacuity_json(tally.mean)},
              {"twice", vacuity_json(tally.twice)}}}};
  if (!answer.reason.empty()) json["reason"] = answer.reason;
  if (!tally.why_not_applicable.empty()) json["why_not_applicable"] = tally.why_not_applicable;
  if (std::isfinite(tally.gain)) json["gain"] = tally.gain;
  if (tally.worst_element) json["worst"] = element_json(answer.kind, *tally.worst_element);
  if (tally.worst_functional) json["worst_functional"] = functional_json(*tally.worst_functional);
  return json;
}

/// Leans of dq, dk and dv.
void add_gradient_leans(const ProbabilisticReport& report, Json& json) {
  if (!report.gradients_not_evaluated.empty()) {
    json["gradients_not_evaluated"] = report.gradients_not_evaluated;
  }
  for (const GradientLean& one : report.gradients) {
    json["gradients"][std::string(name(one.kind))] = {{"elements", one.found.elements},
                                                      {"lean", number(one.found.lean)},
                                                      {"lean_bound", number(one.bound)},
                                                      {"lean_evaluated", !one.refuted}};
  }
}

Json probabilistic_json(const ProbabilisticReport& report) {
  if (!report.not_evaluated.empty()) {
    Json json{{"not_evaluated", report.not_evaluated}};
    add_gradient_leans(report, json);
    return json;
  }
  Json json{{"failure", report.failure},
            {"elements", report.found.elements},
            {"suspect", report.found.suspect},
            {"lean", number(report.found.lean)},
            {"lean_bound", number(report.lean_bound)},
            {"lean_evaluated", !report.lean_refuted}};
  if (report.found.worst_element) {
    json["worst"] = element_json(AnswerKind::out, *report.found.worst_element);
  }
  add_gradient_leans(report, json);
  return json;
}

void add_places(const std::vector<Finding>& findings, std::string_view of, Json& places) {
  for (const Finding& finding : findings) {
    places.push_back({{"of", of},
                      {"where", finding.words},
                      {"judged_share", finding.judged_share},
                      {"refused_share", finding.refused_share}});
  }
}

/// Which known mistakes explain a refused answer, simplest first, and where it is refused.
Json findings_json(const Findings& findings) {
  const Diagnosis& diagnosis = findings.diagnosis;
  Json json{{"classes", Json::array()},
            {"refuted", diagnosis.refuted},
            {"without_theory", diagnosis.without_theory}};
  for (const Explanation& one : diagnosis.explanations) {
    Json form{{"id", one.id}, {"form", one.words}, {"elements", one.elements}, {"open", one.open}};
    if (!one.also.empty()) form["also"] = one.also;
    if (!one.lse_words.empty()) form["lse"] = one.lse_words;
    json["classes"].push_back(std::move(form));
  }
  if (diagnosis.sample) {
    json["sample"] = {{"rows", diagnosis.sample->rows},
                      {"of", diagnosis.sample->judged},
                      {"refused", diagnosis.sample->refused}};
  }
  if (!diagnosis.not_evaluated.empty()) json["not_evaluated"] = diagnosis.not_evaluated;
  json["only_at"] = Json::array();
  add_places(findings.location.findings, "out, lse", json["only_at"]);
  for (const GradientLocation& one : findings.gradients) {
    add_places(one.findings, name(one.kind), json["only_at"]);
  }
  return json;
}

Json report_json(const Report& report) {
  Json json{{"contract", {{"name", report.contract_name}, {"hash", report.contract_hash}}},
            {"rows_judged", report.rows_judged},
            {"rows_total", report.rows_total},
            {"keys_judged", report.keys_judged},
            {"keys_total", report.keys_total},
            {"escalated_rows", report.escalated},
            {"escalated_keys", report.escalated_keys},
            {"most_bits", report.bits},
            {"power",
             {{"gain", number(report.power.gain)},
              {"missing_mass_lse", report.power.missing_mass_lse},
              {"missing_mass_out", report.power.missing_mass_out},
              {"missing_block", report.power.missing_block}}},
            {"answers", Json::array()}};
  if (!report.reason.empty()) json["reason"] = report.reason;
  for (const AnswerReport& answer : report.answers) json["answers"].push_back(answer_json(answer));
  if (report.probabilistic) json["probabilistic"] = probabilistic_json(*report.probabilistic);
  return json;
}

}  // namespace

std::string to_json(const std::vector<CaseOutcome>& outcomes) {
  std::vector<Verdict> verdicts;
  Json cases = Json::array();
  for (const CaseOutcome& outcome : outcomes) {
    verdicts.push_back(outcome.verdict);
    Json json = outcome.error.empty() ? report_json(outcome.report) : Json::object();
    json["case"] = outcome.name;
    json["verdict"] = word(outcome.verdict);
    if (!outcome.error.empty()) json["error"] = outcome.error;
    if (!outcome.command.empty()) json["repeat"] = outcome.command;
    if (outcome.findings) json["explanation"] = findings_json(*outcome.findings);
    cases.push_back(std::move(json));
  }
  const Verdict verdict = worst(verdicts);
  const Json file{{"schema", "ringproof.report/1"},
                  {"verdict", word(verdict)},
                  {"exit_status", exit_code(verdict)},
                  {"cases", std::move(cases)}};
  // A file name need not be UTF-8; what is not becomes a replacement character.
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringproof::oracle
