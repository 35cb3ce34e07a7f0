#include "oracle/audit/rule.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "oracle/audit/rules_text.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

using nlohmann::json;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double over(double measured, double allowed) {
  if (!std::isfinite(measured)) return kInfinity;  // whatever is allowed
  if (measured == 0) return 0;
  return allowed > 0 ? measured / allowed : kInfinity;
}

/// floor(fraction * count), where the fraction is the shortest decimal that is read as it: 0.29 is
/// a little less in binary64, and yet 29 of 100 elements are allowed.
std::size_t allowed_mismatches(double fraction, std::size_t count) {
  if (!(fraction > 0)) return 0;
  if (fraction >= 1) return count;
  std::array<char, 512> text{};  // "0.", at most 323 zeros, at most 17 digits
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), fraction, std::chars_format::fixed);
  // From the last digit: floor((d + x) / 10) is floor((d + floor(x)) / 10) for an integer d.
  std::size_t product = 0;
  for (const char* digit = end; --digit != text.data() + 1;) {
    product = (static_cast<std::size_t>(*digit - '0') * count + product) / 10;
  }
  return product;
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
  const std::size_t free = allowed_mismatches(rule.fraction, ratios.size());
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

/// What numbers a key takes.
struct Range {
  const char* words;
  double least, below;
  bool with_least;
  bool holds(double x) const { return (with_least ? x >= least : x > least) && x < below; }
};
constexpr Range kAny{"a number", -kInfinity, kInfinity, false};
constexpr Range kFromZero{"0 or more", 0, kInfinity, true};
constexpr Range kAboveZero{"more than 0", 0, kInfinity, false};
constexpr Range kShare{"0 or more and less than 1", 0, 1, true};     // of all elements: no rule
constexpr Range kAngle{"more than 0 and less than 2", 0, 2, false};  // 1 - cosine is at most 2

/// Reads one object, key by key, so that an unknown key is refused by name.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string origin)
      : object_(object), origin_(std::move(origin)) {
    if (!object.is_object()) refuse("is " + shown(object) + ", but an object is needed");
  }
  [[noreturn]] void refuse(const std::string& what) const { throw BadInput(origin_ + ": " + what); }

  double number(const char* key, double otherwise, const Range& range) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !range.holds(value->get<double>())) needed(key, range.words);
    return value->get<double>();
  }
  std::int64_t integer(const char* key, std::int64_t otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    constexpr std::int64_t kMost = 1 << 16;
    if (!value->is_number_integer() || *value < 1 || *value > kMost) {
      needed(key, "an integer from 1 to " + std::to_string(kMost));
    }
    return value->get<std::int64_t>();
  }
  std::string text(const char* key, const std::string& otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) needed(key, "a string");
    return value->get<std::string>();
  }
  template <class Value>
  Value word(const char* key, const char* otherwise,
             std::initializer_list<std::pair<const char*, Value>> words) {
    const std::string given = text(key, otherwise);
    std::string known;
    for (const auto& [name, value] : words) {
      if (given == name) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    needed(key, "one of " + known);
  }
  const json* find(const char* key) {
    known_.insert(key);
    const auto place = object_.find(key);
    return place == object_.end() ? nullptr : &*place;
  }
  /// Refuses what find() did not ask for; `elsewhere`: keys of objects of another kind, and whose.
  void finish(const std::map<std::string, std::string>& elsewhere = {}) const {
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) != 0) continue;
      const auto other = elsewhere.find(key);
      if (other != elsewhere.end()) refuse(key + " belongs to " + other->second);
      refuse("unknown key " + in_quotes(key) +
             " (nearest known: " + std::string(nearest(key, known)) + ")");
    }
  }

 private:
  static std::string shown(const json& value) {
    if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
    if (value.is_array()) return "a list";
    return value.is_object() ? "an object" : value.dump();
  }
  [[noreturn]] void needed(const char* key, const std::string& what) const {
    refuse(std::string(key) + " is " + shown(object_.at(key)) + ", but " + what + " is needed");
  }

  const json& object_;
  std::string origin_;
  std::set<std::string> known_;
};

Comparison read_comparison(const json& object, AnswerKind tensor, const std::string& origin) {
  ObjectReader reader(object, origin);
  using Kind = Comparison::Kind;
  Comparison comparison;
  const char* required = nullptr;
  comparison.kind = reader.word<Kind>("kind", "close",
                                      {{"close", Kind::close},
                                       {"error ratio", Kind::error_ratio},
                                       {"cosine", Kind::cosine},
                                       {"rmse", Kind::rmse},
                                       {"nmse", Kind::nmse}});
  switch (comparison.kind) {
    case Kind::close:
      comparison.atol = reader.number("atol", 0, kFromZero);
      comparison.rtol = reader.number("rtol", 0, kFromZero);
      comparison.fraction = reader.number("fraction", 0, kShare);
      break;
    case Kind::error_ratio:
      if (tensor != AnswerKind::out) {
        reader.refuse("error ratio is of out alone: the run in low precision has no other tensor");
      }
      comparison.factor = reader.number(required = "factor", 0, kAboveZero);
      comparison.atol = reader.number("atol", 0, kFromZero);
      break;
    case Kind::cosine:
      comparison.limit = reader.number(required = "limit", 0, kAngle);
      break;
    case Kind::rmse:
    case Kind::nmse:
      comparison.limit = reader.number(required = "limit", 0, kAboveZero);
  }
  const std::string not_here = ", not to " + reader.text("kind", "close");
  reader.finish({{"atol", "close and error ratio" + not_here},
                 {"rtol", "close" + not_here},
                 {"fraction", "close" + not_here},
                 {"factor", "error ratio" + not_here},
                 {"limit", "cosine, rmse and nmse" + not_here}});
  if (required != nullptr && reader.find(required) == nullptr) {
    reader.refuse(std::string(required) + " is missing");
  }
  return comparison;
}

/// Elements of a tensor that is drawn for a rule.
constexpr double kMostDrawn = 0x1p28;

RuleInputs read_inputs(const json& object, const std::string& origin) {
  ObjectReader reader(object, origin);
  using Distribution = RuleInputs::Distribution;
  RuleInputs inputs;
  inputs.distribution = reader.word<Distribution>("distribution", "normal",
                                                  {{"normal", Distribution::normal},
                                                   {"uniform", Distribution::uniform},
                                                   {"clamped", Distribution::clamped}});
  inputs.factor = reader.number("factor", 1, kAboveZero);
  inputs.upstream_ones = reader.word<bool>("dout", "drawn", {{"drawn", false}, {"ones", true}});
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
  const double rows = static_cast<double>(std::max(recipe.keys, recipe.queries));
  const double heads = static_cast<double>(recipe.batches) * static_cast<double>(recipe.heads);
  const double width = static_cast<double>(std::max(recipe.head_dim, recipe.value_dim));
  if (rows * heads * width > kMostDrawn) reader.refuse("a tensor of more than 2^28 elements");
  recipe.gradients = false;
  if (!parse_dtype(reader.text("dtype", "BF16"), recipe.dtype) || !is_float(recipe.dtype)) {
    reader.refuse("dtype is no float type");
  }
  recipe.spec.causal = reader.word<Causal>("causal", "none",
                                           {{"none", Causal::none},
                                            {"top_left", Causal::top_left},
                                            {"bottom_right", Causal::bottom_right}});
  if (reader.find("scale") != nullptr) recipe.spec.scale = reader.number("scale", 0, kAny);
  reader.finish();
  return inputs;
}

/// "compares": each tensor with its conditions.
void read_compares(const json& object, const std::string& origin, Rule& rule) {
  ObjectReader reader(object, origin);
  for (const AnswerKind kind :
       {AnswerKind::out, AnswerKind::lse, AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
    const std::string tensor(name(kind));
    const json* list = reader.find(tensor.c_str());
    if (list == nullptr) continue;
    if (!list->is_array() || list->empty()) {
      reader.refuse(tensor + " needs a list of conditions, at least one");
    }
    for (const json& one : *list) {
      const std::string place =
          "." + tensor + "[" + std::to_string(rule.compares[kind].size()) + "]";
      rule.compares[kind].push_back(read_comparison(one, kind, origin + place));
    }
  }
  reader.finish();
  if (rule.compares.empty()) reader.refuse("needs at least one of out, lse, dq, dk, dv");
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
  const std::string here = origin + ": rule " + in_quotes(rule.name) + ", ";
  rule.note = reader.text("note", "");
  if (const json* source = reader.find("source")) {
    ObjectReader from(*source, here + "source");
    rule.project = from.text("project", "");
    rule.file = from.text("file", "");
    rule.version = from.text("version", "");
    from.finish();
  }
  const json* inputs = reader.find("inputs");
  rule.inputs = read_inputs(inputs == nullptr ? json::object() : *inputs, here + "inputs");
  rule.inputs.recipe.name = rule.name;
  const json* compares = reader.find("compares");
  reader.finish();
  if (compares == nullptr) reader.refuse("compares is missing");
  read_compares(*compares, here + "compares", rule);
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
