// The two searches (fit.hpp).
#include "oracle/diagnose/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "oracle/case/error.hpp"
#include "oracle/diagnose/error_field.hpp"
#include "oracle/diagnose/fit_fields.hpp"

namespace ringproof::oracle {

namespace {

using nlohmann::json;

/// Rows that are enough to refuse most contracts that will be refused.
constexpr std::int64_t kFewRows = 32;

class Search {
 public:
  Search(const Case& input, const CheckOptions& options) : input_(input), options_(options) {
    options_.walk.progress = {};
    options_.require.clear();
    options_.power.reset();
    options_.probabilistic = false;
    options_.budget.reset();  // contracts are compared on the same rows
  }

  std::int64_t tried() const { return static_cast<std::int64_t>(known_.size()); }

  /// True if the contract accepts these answers (all, if `only` is empty), with power.
  bool accepts(const std::string& contract, const std::vector<AnswerKind>& only) {
    std::string key = contract;
    for (const AnswerKind kind : only) key.append(" ").append(name(kind));
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = judge(contract, only);
  }

  /// Mean logarithm of what the contract allows, over a few rows.
  double log_allowed(const std::string& contract_name) const {
    const Contract contract = read_contract(contract_name, input_.problem.spec);
    CheckOptions few = options_;
    few.rows = std::min(options_.rows.value_or(kFewRows), kFewRows);
    const Report report = check(input_, contract, few);
    const ErrorField field = error_field(input_, contract, few, report);
    double sum = 0, count = 0;
    for (const auto* elements : {&field.out, &field.lse}) {
      for (const FieldElement& e : *elements) {
        if (std::isnan(e.ratio) || !(e.bound > 0)) continue;
        sum += std::log(e.bound);
        ++count;
      }
    }
    return count > 0 ? sum / count : 0;
  }

 private:
  bool judge(const std::string& contract_name, const std::vector<AnswerKind>& only) const {
    CheckOptions options = options_;
    if (!only.empty()) options.only = only;
    try {
      const Contract contract = read_contract(contract_name, input_.problem.spec);
      if (options_.rows.value_or(8 * kFewRows) > 4 * kFewRows) {
        options.rows = kFewRows;
        if (check(input_, contract, options).verdict == Verdict::fail) return false;
        options.rows = options_.rows;
      }
      return check(input_, contract, options).verdict == Verdict::pass;
    } catch (const BadInput&) {
      return false;  // a contract of other input types, or of another number of ranks
    }
  }

  const Case& input_;
  CheckOptions options_;
  std::map<std::string, bool> known_;
};

/// The smallest rung of every ladder that alone makes this answer acceptable.
std::vector<FieldChange> deciding_fields(const Case& input, const json& declared, AnswerKind kind,
                                         Search& search) {
  std::vector<FieldChange> deciding;
  for (const FieldLadder& ladder : field_ladders(input, kind)) {
    const auto contract_of = [&](const json& rung) {
      json contract = merged_contract(declared, rung);
      contract["name"] = "fitted";
      return contract;
    };
    // The loosest rung first: if that refuses, none of the ladder accepts.
    if (!search.accepts(contract_of(ladder.rungs.back()).dump(), {kind})) continue;
    for (const json& rung : ladder.rungs) {
      const json contract = contract_of(rung);
      if (!search.accepts(contract.dump(), {kind})) continue;
      std::string value;
      for (const auto& [field, text] : differing_fields(declared, contract)) {
        value += (value.empty() ? "" : ", ") + field + " " + text;
      }
      if (!value.empty()) deciding.push_back({ladder.field, value});
      break;
    }
  }
  return deciding;
}

/// Variants that may be added to a name, as far as the case has anything to do with them.
std::vector<std::string> variants(const Case& input) {
  std::vector<std::string> all{"+exp13", "+sumcast", "+ftz"};
  const Problem& p = input.problem;
  if (p.spec.softcap > 0) all.emplace_back("+softcap");
  if (p.bias || p.alibi_slopes) {
    all.emplace_back("+bias");
    all.emplace_back("+biasstore");
  }
  return all;
}

bool has_gradients(const Case& input) {
  return std::any_of(input.answers.begin(), input.answers.end(), [](const Answer& answer) {
    return answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse;
  });
}

/// Names built on one preset that accept everything: no variant can be left out of them.
void fit_preset(const Case& input, const std::string& base, Search& search,
                std::vector<std::string>& names) {
  std::vector<std::string> chosen = variants(input);
  const auto joined = [&](const std::vector<std::string>& parts) {
    std::string name = base;
    for (const std::string& part : parts) name += part;
    return name;
  };
  if (search.accepts(base, {})) {
    names.push_back(base);
    return;
  }
  std::vector<std::string> ends{""};
  if (has_gradients(input)) ends = {"", "+gacc256", "+gacc64", "+gacc32"};
  for (const std::string& end : ends) {
    std::vector<std::string> parts = chosen;
    if (!end.empty()) parts.push_back(end);
    // Variants that this preset cannot have are no reason to give up the others.
    if (!search.accepts(joined(parts), {})) continue;
    for (std::size_t n = 0; n < parts.size();) {
      std::vector<std::string> fewer = parts;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(n));
      if (search.accepts(joined(fewer), {})) {
        parts = fewer;
      } else {
        ++n;
      }
    }
    // Larger tiles than the preset's smallest one allow less.
    for (const char* block : {"+block512", "+block256", "+block128", "+block64"}) {
      parts.emplace_back(block);
      if (search.accepts(joined(parts), {})) break;
      parts.pop_back();
    }
    names.push_back(joined(parts));
    return;
  }
}

std::vector<std::string> bases(std::int64_t ranks) {
  std::vector<std::string> all;
  for (const std::string& preset : preset_names()) {
    if (ranks > 1) {
      for (const char* suffix : {"-ring", "-ring-lowp", "-split", "-decode"}) {
        all.push_back(preset + suffix);
      }
    } else {
      all.push_back(preset);
    }
  }
  return all;
}

}  // namespace

Fit fit(const Case& input, const std::string& declared, const CheckOptions& options) {
  const Contract contract = read_contract(declared, input.problem.spec);
  Fit result;
  result.declared = check(input, contract, options);
  const json declared_json = json::parse(expanded_json(declared));
  Search search(input, options);
  for (const AnswerReport& answer : result.declared.answers) {
    if (answer.verdict != Verdict::fail) continue;
    result.answers.push_back(
        {answer.kind, answer.verdict, deciding_fields(input, declared_json, answer.kind, search)});
  }
  const std::int64_t ranks = input.problem.spec.ranks.value_or(contract.partials.count);
  std::vector<std::string> names;
  for (const std::string& base : bases(ranks)) fit_preset(input, base, search, names);
  if (result.declared.verdict == Verdict::pass &&
      std::find(names.begin(), names.end(), declared) == names.end()) {
    names.push_back(declared);
  }
  const double reference = search.log_allowed(declared);
  for (const std::string& name : names) {
    FittedContract one{
        name, contract_hash(name), std::exp(search.log_allowed(name) - reference), {}};
    for (const auto& [field, value] :
         differing_fields(declared_json, json::parse(expanded_json(name)))) {
      one.differs.push_back({field, value});
    }
    result.accepting.push_back(std::move(one));
  }
  std::stable_sort(
      result.accepting.begin(), result.accepting.end(),
      [](const FittedContract& a, const FittedContract& b) { return a.allows < b.allows; });
  result.tried = search.tried();
  return result;
}

}  // namespace ringproof::oracle
