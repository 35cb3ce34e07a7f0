#include "oracle/python/functions.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "oracle/audit/audit.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/json_text.hpp"
#include "oracle/diagnose/diagnose.hpp"
#include "oracle/diagnose/fit.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/truth_tensors.hpp"
#include "oracle/python/interruptible.hpp"
#include "oracle/python/subject.hpp"
#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::python {

using nlohmann::json;
using oracle::BadInput;

namespace {

using Shape = std::vector<std::int64_t>;

nb::tuple intervals(oracle::IntervalTensor& tensor, const Shape& shape) {
  const std::int64_t undecided = tensor.undecided();
  return nb::make_tuple(numpy_array(std::move(tensor.lo), shape),
                        numpy_array(std::move(tensor.hi), shape),
                        numpy_array(std::move(tensor.rounded), shape), undecided);
}

void add_gradients(const oracle::Problem& p, oracle::GradientTensors& gradients, nb::dict& result) {
  result["dq"] = intervals(gradients.dq, {p.batches, p.heads, p.queries, p.head_dim});
  result["dk"] = intervals(gradients.dk, {p.batches, p.kv_heads, p.keys, p.head_dim});
  result["dv"] = intervals(gradients.dv, {p.batches, p.kv_heads, p.keys, p.value_dim});
  if (p.bias) {
    const oracle::BiasShape shape = oracle::bias_shape(p);
    result["dbias"] = intervals(gradients.dbias, {shape.begin(), shape.end()});
  }
  if (p.sinks) result["dsinks"] = intervals(gradients.dsinks, {p.heads});
}

json changes(const std::vector<oracle::FieldChange>& list) {
  json result = json::array();
  for (const oracle::FieldChange& one : list) {
    result.push_back({{"field", one.field}, {"value", one.value}});
  }
  return result;
}

json as_json(const oracle::Fit& fit, const oracle::Diagnosis& diagnosis) {
  json result{{"verdict", word(fit.declared.verdict)},
              {"tried", fit.tried},
              {"answers", json::array()},
              {"accepting", json::array()},
              {"explanations", json::array()}};
  for (const oracle::AnswerFit& answer : fit.answers) {
    result["answers"].push_back(
        {{"answer", name(answer.kind)}, {"deciding", changes(answer.deciding)}});
  }
  for (const oracle::FittedContract& one : fit.accepting) {
    result["accepting"].push_back({{"contract", one.contract},
                                   {"hash", one.hash},
                                   {"allows", one.allows},
                                   {"differs", changes(one.differs)}});
  }
  for (const oracle::Explanation& one : diagnosis.explanations) {
    result["explanations"].push_back(one.id);
  }
  return result;
}

json as_json(const oracle::RuleFinding& one) {
  const json ratio = std::isfinite(one.ratio) ? json(one.ratio) : json(nullptr);
  json not_computed = json::array();
  for (const oracle::AnswerKind kind : one.not_computed) not_computed.push_back(name(kind));
  return {{"id", one.id},
          {"words", one.words},
          {"accepted", one.accepted()},
          {"ratio", ratio},
          {"not_computed", not_computed}};
}

json as_json(const oracle::AuditReport& report) {
  json result{{"rule", report.rule},
              {"rows", report.rows},
              {"rows_total", report.rows_total},
              {"exact", as_json(report.exact)},
              {"made_up", json::array()},
              {"findings", json::array()}};
  for (const oracle::RuleFinding& one : report.made_up) result["made_up"].push_back(as_json(one));
  for (const oracle::RuleFinding& one : report.findings) result["findings"].push_back(as_json(one));
  return result;
}

oracle::Rule rule_of(const std::string& text) {
  std::string names;
  for (const oracle::Rule& rule : oracle::public_rules()) {
    if (rule.name == text) return rule;
    names += (names.empty() ? "" : ", ") + rule.name;
  }
  if (text.starts_with('{')) return oracle::read_rule(oracle::parse_json(text, "rule"), "rule");
  throw BadInput("rule: \"" + text + "\" is neither an object nor one of " + names);
}

/// How the answers of a case are stored: by the contract given, else the first one for its type.
oracle::Contract audit_contract(const std::string& contract, const oracle::Case& input) {
  if (!contract.empty()) return oracle::read_contract(contract, input.problem.spec);
  return oracle::read_contract(oracle::contracts_of(input.problem.q.dtype).front(),
                               input.problem.spec);
}

}  // namespace

nb::dict truth(const nb::object& tensors, const std::string& spec, const std::string& type,
               const nb::dict& options, const std::string& name) {
  const Subject subject(tensors, spec, name);
  const oracle::Case& input = subject.input;
  const oracle::Problem& p = input.problem;
  oracle::CheckOptions terms = check_options(options);
  oracle::DType dtype = p.q.dtype;
  if (!type.empty() && (!oracle::parse_dtype(type, dtype) || !oracle::is_float(dtype))) {
    throw BadInput(name + ": dtype " + type + " is no float type");
  }
  const bool wide = dtype == oracle::DType::f64;
  const oracle::RoundTo types{dtype, wide ? oracle::DType::f64 : oracle::DType::f32};
  oracle::TruthTensors forward;
  oracle::GradientTensors gradients;
  const bool backward = input.dout || input.dlse;
  interruptible(terms.walk, [&] {
    const oracle::LseBase base = p.spec.lse_base.value_or(oracle::LseBase::e);
    forward = oracle::truth_tensors(p, base, terms.bits, terms.walk, types);
    if (backward) {
      gradients =
          oracle::gradient_tensors(p, {input.dout, input.dlse, {}}, terms.bits, terms.walk, dtype);
    }
  });
  nb::dict result;
  result["out"] = intervals(forward.out, {p.batches, p.heads, p.queries, p.value_dim});
  result["lse"] = intervals(forward.lse, {p.batches, p.heads, p.queries});
  if (backward) add_gradients(p, gradients, result);
  return result;
}

nb::tuple fit(const nb::object& tensors, const std::string& spec, const std::string& contract,
              const nb::dict& options, const std::string& name) {
  const Subject subject(tensors, spec, name);
  const oracle::Case& input = subject.input;
  const std::string declared = subject.contract_text(contract);
  if (input.answers.empty()) throw BadInput(name + ": there is no answer to fit (out, lse, ...)");
  const oracle::CheckOptions terms = check_options(options);
  std::string text, structured;
  {
    const nb::gil_scoped_release without_lock;
    const oracle::Contract read = oracle::read_contract(declared, input.problem.spec);
    const oracle::Fit found = oracle::fit(input, declared, terms);
    const oracle::Diagnosis diagnosis = oracle::diagnose(input, read, terms, found.declared);
    text = oracle::to_text(found.declared, "") + oracle::to_text(found.declared, diagnosis) +
           oracle::to_text(found, diagnosis);
    structured = as_json(found, diagnosis).dump();
  }
  return nb::make_tuple(text.c_str(), structured.c_str());
}

nb::tuple audit(const std::string& rule_text, const nb::object& tensors, const std::string& spec,
                const std::string& contract, std::int64_t rows, int forms,
                const nb::object& threads, std::uint64_t seed, const std::string& name) {
  const oracle::Rule rule = rule_of(rule_text);
  const oracle::AuditOptions options{
      .forms_per_class = forms, .rows = rows, .threads = thread_count(threads)};
  std::optional<Subject> subject;
  if (!tensors.is_none()) subject.emplace(tensors, spec, name);
  std::string text, structured;
  {
    const nb::gil_scoped_release without_lock;
    std::optional<oracle::GeneratedCase> own;
    if (!subject) own = oracle::rule_inputs(rule, seed);
    const oracle::Case input = subject ? subject->input : own->as_case();
    const oracle::Contract terms = audit_contract(contract, input);
    oracle::AuditReport report = oracle::audit(input, terms, rule, options);
    oracle::audit_gradients(input, terms, rule, options, report);
    text = oracle::to_text(report);
    structured = as_json(report).dump();
  }
  return nb::make_tuple(text.c_str(), structured.c_str());
}

nb::list public_rule_names() {
  nb::list names;
  for (const oracle::Rule& rule : oracle::public_rules()) names.append(rule.name.c_str());
  return names;
}

}  // namespace ringproof::python
