#include "oracle/python/judgement.hpp"

#include <nlohmann/json.hpp>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/python/case_files.hpp"
#include "oracle/python/interruptible.hpp"
#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/heat_map.hpp"
#include "oracle/report/report.hpp"
#include "oracle/report/report_json.hpp"

namespace ringproof::python {

using oracle::BadInput;

namespace {

constexpr unsigned kLeastBits = 64, kMostBits = 65536;

oracle::AnswerKind answer_kind(const std::string& word) {
  for (int n = 0; n <= static_cast<int>(oracle::AnswerKind::dsinks); ++n) {
    const auto kind = static_cast<oracle::AnswerKind>(n);
    if (oracle::name(kind) == word) return kind;
  }
  throw BadInput("\"" + word + "\" is no answer (out, lse, dq, dk, dv, dbias, dsinks)");
}

std::vector<oracle::AnswerKind> answer_kinds(nb::handle words) {
  std::vector<oracle::AnswerKind> kinds;
  for (const nb::handle word : words) kinds.push_back(answer_kind(nb::str(word).c_str()));
  return kinds;
}

/// "fast", "tight" or a number of binary digits.
void read_precision(nb::handle value, oracle::CheckOptions& options) {
  const std::string word = nb::str(value).c_str();
  options.walk.precision = word == "tight" ? oracle::Precision::tight : oracle::Precision::fast;
  if (word == "fast" || word == "tight") return;
  long bits = 0;
  if (!nb::try_cast(value, bits) || bits < kLeastBits || bits > kMostBits) {
    throw BadInput("precision: " + word + " is neither \"fast\", \"tight\" nor a number from " +
                   std::to_string(kLeastBits) + " to " + std::to_string(kMostBits));
  }
  options.bits = static_cast<unsigned>(bits);
}

template <class Number>
Number number(nb::handle value, const std::string& option) {
  Number result{};
  if (!nb::try_cast(value, result)) throw BadInput(option + ": is no number that fits");
  return result;
}

}  // namespace

oracle::CheckOptions check_options(const nb::dict& given) {
  oracle::CheckOptions options;
  for (const auto& [key, value] : given) {
    if (value.is_none()) continue;
    const std::string name = nb::str(key).c_str();
    if (name == "only") options.only = answer_kinds(value);
    if (name == "require") options.require = answer_kinds(value);
    if (name == "rows") options.rows = number<std::int64_t>(value, name);
    if (name == "seed") options.seed = number<std::uint64_t>(value, name);
    if (name == "budget") options.budget = number<double>(value, name);
    if (name == "power") options.power = number<double>(value, name);
    if (name == "probabilistic") options.probabilistic = nb::cast<bool>(value);
    if (name == "threads") options.walk.threads = number<int>(value, name);
    if (name == "precision") read_precision(value, options);
  }
  if (options.rows && *options.rows < 1) throw BadInput("rows: must be at least 1");
  if (options.budget && !(*options.budget > 0)) throw BadInput("budget: must be positive seconds");
  if (options.power && !(*options.power > 0)) throw BadInput("power: must be positive");
  if (options.rows && options.budget) throw BadInput("budget and rows exclude each other");
  if (options.walk.threads < 0) throw BadInput("threads: must not be negative");
  return options;
}

oracle::Case case_of(const Arrays& arrays, const std::string& spec) {
  const oracle::Source& source = arrays.source();
  return oracle::assemble_case(source, source, oracle::parse_spec(spec, source.path));
}

Judgement::Judgement(const nb::dict& tensors, const std::string& spec, const std::string& contract,
                     const nb::dict& options, const std::string& name)
    : arrays_(tensors, name),
      case_(case_of(arrays_, spec)),
      contract_text_(contract.empty() ? case_.problem.spec.contract : contract),
      options_(check_options(options)) {
  if (contract_text_.empty()) throw BadInput(name + ": no contract is given");
  if (case_.answers.empty()) throw BadInput(name + ": there is no answer to judge (out, lse, ...)");
  contract_ = oracle::read_contract(contract_text_, case_.problem.spec);
  interruptible(options_.walk, [this] {
    fingerprint_ = arrays_.fingerprint();
    report_ = oracle::check(case_, contract_, options_);
  });
}

std::string Judgement::text(const std::string& repeat) const {
  return oracle::to_text(report_, repeat);
}

std::string Judgement::json(const std::string& repeat) const {
  oracle::CaseOutcome outcome;
  outcome.name = case_.name;
  outcome.verdict = report_.verdict;
  outcome.report = report_;
  outcome.command = repeat;
  return oracle::to_json({outcome});
}

void Judgement::require_unchanged() const {
  if (arrays_.fingerprint() != fingerprint_) {
    throw BadInput(case_.name + ": an array has changed since it was judged; judge it again");
  }
}

const oracle::Diagnosis& Judgement::diagnosis() {
  if (!diagnosis_) {
    require_unchanged();
    diagnosis_ = oracle::diagnose(case_, contract_, options_, report_);
  }
  return *diagnosis_;
}

std::string Judgement::explanation_text() {
  const nb::gil_scoped_release without_lock;
  const std::lock_guard one_at_a_time(mutex_);
  const oracle::Diagnosis& found = diagnosis();
  std::string text = oracle::to_text(report_, found);
  if (report_.verdict == oracle::Verdict::fail && found.explanations.empty()) {
    require_unchanged();
    const oracle::ErrorField field = oracle::error_field(case_, contract_, options_, report_);
    text += oracle::to_text(oracle::locate(case_, contract_, field));
  }
  return text;
}

std::string Judgement::explanations_json() {
  const nb::gil_scoped_release without_lock;
  const std::lock_guard one_at_a_time(mutex_);
  auto list = nlohmann::json::array();
  for (const oracle::Explanation& one : diagnosis().explanations) {
    std::string words = one.words;
    if (!one.lse_words.empty()) words += "; " + one.lse_words;
    list.push_back({{"id", one.id},
                    {"also", one.also},
                    {"words", words},
                    {"elements", one.elements},
                    {"open", one.open}});
  }
  return list.dump();
}

std::string Judgement::heat_map() {
  const nb::gil_scoped_release without_lock;
  require_unchanged();
  const oracle::ErrorField field = oracle::error_field(case_, contract_, options_, report_);
  return oracle::heat_map_svg(
      field, case_.name + ": " + std::string(word(report_.verdict)) + " under " + contract_.name);
}

void Judgement::save(const std::string& path) const {
  require_unchanged();
  oracle::Spec spec = case_.problem.spec;
  spec.contract = contract_text_;
  write_tensors(path, arrays_.source(), oracle::to_json(spec));
}

}  // namespace ringproof::python
