#include "oracle/python/subject.hpp"

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"

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

oracle::Case case_of(const std::optional<Arrays>& arrays, const nb::object& tensors,
                     const std::string& spec) {
  if (!arrays) return oracle::read_case(nb::str(tensors).c_str());
  const oracle::Source& source = arrays->source();
  return oracle::assemble_case(source, source, oracle::parse_spec(spec, source.path));
}

std::optional<Arrays> arrays_of(const nb::object& tensors, const std::string& name) {
  if (nb::isinstance<nb::str>(tensors)) return {};
  return std::make_optional<Arrays>(nb::cast<nb::dict>(tensors), name);
}

}  // namespace

int thread_count(nb::handle value) {
  if (value.is_none()) return 0;
  int count = 0;
  if (!nb::try_cast(value, count) || count < 1 || count > oracle::kMostThreads) {
    throw BadInput("threads: Value " + std::string(nb::str(value).c_str()) + " not in range 1 to " +
                   std::to_string(oracle::kMostThreads));
  }
  return count;
}

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
    if (name == "probabilistic") options.probabilistic = number<bool>(value, name);
    if (name == "threads") options.walk.threads = thread_count(value);
    if (name == "precision") read_precision(value, options);
  }
  if (options.rows && *options.rows < 1) throw BadInput("rows: must be at least 1");
  if (options.budget && !(*options.budget > 0)) throw BadInput("budget: must be positive seconds");
  if (options.power && !(*options.power > 0)) throw BadInput("power: must be positive");
  if (options.rows && options.budget) throw BadInput("budget and rows exclude each other");
  return options;
}

Subject::Subject(const nb::object& tensors, const std::string& spec, const std::string& name)
    : arrays(arrays_of(tensors, name)), input(case_of(arrays, tensors, spec)) {
  input.name = name;
}

std::string Subject::contract_text(const std::string& contract) const {
  const std::string& text = contract.empty() ? input.problem.spec.contract : contract;
  if (text.empty()) throw BadInput(input.name + ": no contract is given");
  return text;
}

}  // namespace ringproof::python
