#include "oracle/python/judgement.hpp"

#include <nlohmann/json.hpp>

#include "oracle/case/error.hpp"
#include "oracle/python/case_files.hpp"
#include "oracle/python/interruptible.hpp"
#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/heat_map.hpp"
#include "oracle/report/html.hpp"
#include "oracle/report/pictures.hpp"
#include "oracle/report/report.hpp"
#include "oracle/report/report_json.hpp"

namespace ringproof::python {

using oracle::BadInput;

Judgement::Judgement(const nb::object& tensors, const std::string& spec,
                     const std::string& contract, const nb::dict& options, const std::string& name)
    : subject_(tensors, spec, name),
      contract_text_(subject_.contract_text(contract)),
      options_(check_options(options)),
      contract_(oracle::read_contract(contract_text_, subject_.input.problem.spec)) {
  if (subject_.input.answers.empty()) {
    throw BadInput(name + ": there is no answer to judge (out, lse, ...)");
  }
  outcome_.name = name;
  interruptible(options_.walk, [this] {
    if (subject_.arrays) fingerprint_ = subject_.arrays->fingerprint();
    outcome_.report = oracle::check(subject_.input, contract_, options_);
  });
  outcome_.verdict = outcome_.report.verdict;
}

std::string Judgement::text(const std::string& repeat) const {
  return oracle::to_text(outcome_.report, repeat);
}

std::string Judgement::json(const std::string& repeat) const {
  oracle::CaseOutcome outcome = outcome_;
  outcome.command = repeat;
  return oracle::to_json({outcome});
}

std::string Judgement::html(const std::string& repeat) {
  const nb::gil_scoped_release without_lock;
  const std::lock_guard one_at_a_time(mutex_);
  find();
  oracle::CaseOutcome outcome = outcome_;
  outcome.command = repeat;
  outcome.pictures = oracle::pictures(field(), gradients());
  return oracle::to_html({outcome}, RINGPROOF_VERSION);
}

void Judgement::require_unchanged() const {
  if (subject_.arrays && subject_.arrays->fingerprint() != fingerprint_) {
    throw BadInput(outcome_.name + ": an array has changed since it was judged; judge it again");
  }
}

oracle::ErrorField Judgement::field() const {
  require_unchanged();
  return oracle::error_field(subject_.input, contract_, options_, outcome_.report);
}

std::vector<oracle::GradientField> Judgement::gradients() const {
  return oracle::gradient_fields(subject_.input, contract_, options_, outcome_.report);
}

/// Of a refused answer, once.
void Judgement::find() {
  if (outcome_.findings || outcome_.verdict != oracle::Verdict::fail) return;
  outcome_.findings =
      oracle::find(subject_.input, contract_, options_, outcome_.report, field(), gradients());
}

std::string Judgement::explanation_text() {
  const nb::gil_scoped_release without_lock;
  const std::lock_guard one_at_a_time(mutex_);
  find();
  if (!outcome_.findings) return "";
  const oracle::Findings& found = *outcome_.findings;
  std::string text = oracle::to_text(outcome_.report, found.diagnosis);
  text += oracle::to_text(found.location);
  for (const oracle::GradientLocation& one : found.gradients) text += oracle::to_text(one);
  return text;
}

std::string Judgement::explanations_json() {
  const nb::gil_scoped_release without_lock;
  const std::lock_guard one_at_a_time(mutex_);
  find();
  auto list = nlohmann::json::array();
  if (!outcome_.findings) return list.dump();
  for (const oracle::Explanation& one : outcome_.findings->diagnosis.explanations) {
    std::string words = one.words;
    if (!one.lse_words.empty()) words += "; " + one.lse_words;
    list.push_back({{"id", one.id},
                    {"also", one.also},
                    {"words", words},
                    {"elements", one.elements},
                    {"open", one.open},
                    {"estimated", one.estimated}});
  }
  return list.dump();
}

std::string Judgement::heat_map() {
  const nb::gil_scoped_release without_lock;
  return oracle::heat_map_svg(
      field(), gradients(),
      outcome_.name + ": " + std::string(word(outcome_.verdict)) + " under " + contract_.name);
}

void Judgement::save(const std::string& path) const {
  if (!subject_.arrays) throw BadInput(path + ": not written, the case already is a file");
  require_unchanged();
  oracle::Spec spec = subject_.input.problem.spec;
  spec.contract = contract_text_;
  write_tensors(path, subject_.arrays->source(), oracle::to_json(spec));
}

}  // namespace ringproof::python
