#include "oracle/audit/rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "oracle/audit/rules_text.hpp"
#include "oracle/case/error.hpp"

namespace ringproof::oracle {
namespace {

using nlohmann::json;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double over(double measured, double allowed) {
  if (std::isnan(measured)) return kInfinity;
  if (measured == 0) return 0;
  return allowed > 0 ? measured / allowed : kInfinity;
}

/// The largest ratio that remains when a fraction of the elements may have any.
double close_ratio(const Comparison& rule, std::span<const double> answer,
                   std::span<const double> exact) {
  std::vector<double> ratios;
  for (std::size_t n = 0; n < answer.size(); ++n) {
    // Equal infinities are equal.
    const double error = answer[n] == exact[n] ? 0 : std::abs(answer[n] - exact[n]);
    ratios.push_back(over(error, rule.atol + rule.rtol * std::abs(exact[n])));
  }
  if (ratios.empty()) return 0;
  const auto free = static_cast<std::size_t>(rule.fraction * static_cast<double>(ratios.size()));
  if (free >= ratios.size()) return 0;
  const auto place = ratios.end() - 1 - static_cast<std::ptrdiff_t>(free);
  std::nth_element(ratios.begin(), place, ratios.end());
  return *place;
}

double largest_error(std::span<const double> answer, std::span<const double> exact) {
  double largest = 0;
  for (std::size_t n = 0; n < answer.size(); ++n) {
    const double error = answer[n] == exact[n] ? 0 : std::abs(answer[n] - exact[n]);
    if (std::isnan(error)) return error;
    largest = std::max(largest, error);
  }
  return largest;
}

struct Sums {
  double answer = 0, exact = 0, product = 0, error = 0;  // of squares, and of the product
};
Sums sums_of(std::span<const double> answer, std::span<const double> exact) {
  Sums sums;
  for (std::size_t n = 0; n < answer.size(); ++n) {
    sums.answer += answer[n] * answer[n];
    sums.exact += exact[n] * exact[n];
    sums.product += answer[n] * exact[n];
    sums.error += (answer[n] - exact[n]) * (answer[n] - exact[n]);
  }
  return sums;
}

/// Reads one object, key by key, so that an unknown key is refused by name.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string origin)
      : object_(object), origin_(std::move(origin)) {
    if (!object.is_object()) refuse("is not an object");
  }
  [[noreturn]] void refuse(const std::string& what) const { throw BadInput(origin_ + ": " + what); }

  double number(const char* key, double otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) refuse(std::string(key) + " is not a number");
    return value->get<double>();
  }
  std::int64_t integer(const char* key, std::int64_t otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    constexpr std::int64_t kMost = 1 << 16;
    if (!value->is_number_integer() || *value < 1 || *value > kMost) {
      refuse(std::string(key) + " is not an integer from 1 to " + std::to_string(kMost));
    }
    return value->get<std::int64_t>();
  }
  std::string text(const char* key, const std::string& otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(std::string(key) + " is not a text");
    return value->get<std::string>();
  }
  const json* find(const char* key) {
    known_.insert(key);
    const auto place = object_.find(key);
    return place == object_.end() ? nullptr : &*place;
  }
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) == 0) refuse("unknown key \"" + key + "\"");
    }
  }

 private:
  const json& object_;
  std::string origin_;
  std::set<std::string> known_;
};

template <class Value>
Value one_of(const ObjectReader& reader, const std::string& word,
             std::initializer_list<std::pair<const char*, Value>> words) {
  for (const auto& [name, value] : words) {
    if (word == name) return value;
  }
  reader.refuse("unknown word \"" + word + "\"");
}

Comparison read_comparison(const json& object, const std::string& origin) {
  ObjectReader reader(object, origin);
  using Kind = Comparison::Kind;
  Comparison comparison;
  comparison.kind = one_of<Kind>(reader, reader.text("kind", "close"),
                                 {{"close", Kind::close},
                                  {"error ratio", Kind::error_ratio},
                                  {"cosine", Kind::cosine},
                                  {"rmse", Kind::rmse},
                                  {"nmse", Kind::nmse}});
  comparison.atol = reader.number("atol", 0);
  comparison.rtol = reader.number("rtol", 0);
  comparison.fraction = reader.number("fraction", 0);
  comparison.factor = reader.number("factor", 0);
  comparison.limit = reader.number("limit", 0);
  reader.finish();
  return comparison;
}

RuleInputs read_inputs(const json& object, const std::string& origin) {
  ObjectReader reader(object, origin);
  using Distribution = RuleInputs::Distribution;
  RuleInputs inputs;
  inputs.distribution = one_of<Distribution>(reader, reader.text("distribution", "normal"),
                                             {{"normal", Distribution::normal},
                                              {"uniform", Distribution::uniform},
                                              {"clamped", Distribution::clamped}});
  inputs.factor = reader.number("factor", 1);
  inputs.upstream_ones =
      one_of<bool>(reader, reader.text("dout", "drawn"), {{"drawn", false}, {"ones", true}});
  inputs.ranks = reader.integer("ranks", 1);
  Recipe& recipe = inputs.recipe;
  recipe.family = &input_family("normal");
  recipe.semantics = "full";
  recipe.batches = reader.integer("batches", 1);
  recipe.heads = recipe.kv_heads = reader.integer("heads", 1);
  recipe.keys = reader.integer("keys", 256);
  recipe.queries = reader.integer("queries", recipe.keys);
  recipe.head_dim = reader.integer("head_dim", 64);
  recipe.value_dim = reader.integer("value_dim", recipe.head_dim);
  recipe.gradients = false;
  if (!parse_dtype(reader.text("dtype", "BF16"), recipe.dtype) || !is_float(recipe.dtype)) {
    reader.refuse("dtype is no float type");
  }
  recipe.spec.causal = one_of<Causal>(reader, reader.text("causal", "none"),
                                      {{"none", Causal::none},
                                       {"top_left", Causal::top_left},
                                       {"bottom_right", Causal::bottom_right}});
  if (const json* scale = reader.find("scale")) {
    if (!scale->is_number()) reader.refuse("scale is not a number");
    recipe.spec.scale = scale->get<double>();
  }
  reader.finish();
  return inputs;
}

}  // namespace

double ratio_of(const Comparison& rule, std::span<const double> answer,
                std::span<const double> exact, std::span<const double> low_precision) {
  const auto count = static_cast<double>(answer.size());
  switch (rule.kind) {
    case Comparison::Kind::close:
      return close_ratio(rule, answer, exact);
    case Comparison::Kind::error_ratio:
      return over(largest_error(answer, exact),
                  rule.factor * largest_error(low_precision, exact) + rule.atol);
    case Comparison::Kind::cosine: {
      const Sums sums = sums_of(answer, exact);
      const double cosine = sums.product / std::sqrt(sums.answer * sums.exact);
      return over(std::max(0.0, 1 - cosine) + (std::isnan(cosine) ? cosine : 0), rule.limit);
    }
    case Comparison::Kind::rmse:
      return over(std::sqrt(sums_of(answer, exact).error / count), rule.limit);
    case Comparison::Kind::nmse: {
      const Sums sums = sums_of(answer, exact);
      return over(sums.error, rule.limit * sums.exact);
    }
  }
  return kInfinity;
}

bool Rule::needs_low_precision() const {
  for (const auto& [kind, comparisons] : compares) {
    for (const Comparison& one : comparisons) {
      if (one.kind == Comparison::Kind::error_ratio) return true;
    }
  }
  return false;
}

bool Rule::compares_gradients() const {
  return std::any_of(compares.begin(), compares.end(), [](const auto& one) {
    return one.first != AnswerKind::out && one.first != AnswerKind::lse;
  });
}

Rule read_rule(const json& object, const std::string& origin) {
  ObjectReader reader(object, origin);
  Rule rule;
  rule.name = reader.text("name", "unnamed");
  rule.note = reader.text("note", "");
  if (const json* source = reader.find("source")) {
    ObjectReader from(*source, origin + ": source");
    rule.project = from.text("project", "");
    rule.file = from.text("file", "");
    rule.version = from.text("version", "");
    from.finish();
  }
  if (const json* inputs = reader.find("inputs")) {
    rule.inputs = read_inputs(*inputs, origin + ": inputs");
  } else {
    rule.inputs = read_inputs(json::object(), origin);
  }
  rule.inputs.recipe.name = rule.name;
  const json* compares = reader.find("compares");
  if (compares == nullptr || !compares->is_object()) reader.refuse("compares is missing");
  for (const auto& [tensor, list] : compares->items()) {
    const AnswerKind kind = one_of<AnswerKind>(reader, tensor,
                                               {{"out", AnswerKind::out},
                                                {"lse", AnswerKind::lse},
                                                {"dq", AnswerKind::dq},
                                                {"dk", AnswerKind::dk},
                                                {"dv", AnswerKind::dv}});
    if (!list.is_array()) reader.refuse("compares: " + tensor + " is not a list");
    for (const json& one : list) {
      rule.compares[kind].push_back(read_comparison(one, origin + ": " + tensor));
    }
  }
  reader.finish();
  return rule;
}

const std::vector<Rule>& public_rules() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> rules;
    for (const json& one : json::parse(rules_text)) rules.push_back(read_rule(one, "rules.json"));
    return rules;
  }();
  return kRules;
}

}  // namespace ringproof::oracle
