// Names, bases and variants of contracts (contract_name.hpp).
#include "oracle/contract/contract_name.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "oracle/case/error.hpp"
#include "oracle/case/json_text.hpp"
#include "oracle/case/words.hpp"
#include "oracle/contract/contract.hpp"

namespace ringproof::oracle {

namespace {

using Json = nlohmann::json;

// Order of the file, because that is the order of the document.
const nlohmann::ordered_json& presets() {
  static const auto parsed = nlohmann::ordered_json::parse(presets_text);
  return parsed;
}

bool is_accumulator(const Json& value) { return value.is_object() && value.contains("model"); }

/// Puts the fields of `changes` into `object`: objects merge, everything else (lists and
/// accumulators among it) is replaced whole.
void merge_into(Json& object, const Json& changes) {
  for (const auto& item : changes.items()) {
    Json& old = object[item.key()];
    if (item.value().is_object() && old.is_object() && !is_accumulator(old) &&
        !is_accumulator(item.value())) {
      merge_into(old, item.value());
    } else {
      old = item.value();
    }
  }
}

Json expand_preset(const std::string& name) {
  Json changes = presets().at(name);
  Json object = Json::object();
  if (changes.contains("base")) {
    object = expand_preset(changes.at("base").get<std::string>());
    changes.erase("base");
  }
  merge_into(object, changes);
  object["name"] = name;
  return object;
}

/// Splits "word123" into "word" and 123; false if there is a number that is not a plain positive
/// one.
bool split_number(const std::string& text, std::string& word, std::int64_t& number) {
  const std::size_t digit = text.find_first_of("0123456789");
  word = text.substr(0, digit);
  number = 0;
  if (digit == std::string::npos) return true;
  const std::string digits = text.substr(digit);
  if (digits.size() > 9 || digits[0] == '0' ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  number = std::stoll(digits);
  return true;
}

struct Head {
  std::string preset;
  std::string kind;           // "", "split", "decode", "ring"
  std::int64_t partials = 0;  // 0: the spec's ranks
  bool low_precision = false;
};

/// The nearest of the known words, for the end of a message; nothing if none is meant.
std::string hint(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string near(nearest(word, views));
  return resembles(word, near) ? " (nearest known: " + near + ")" : "";
}

/// Presets, and the short forms that readers type most.
std::string hint_at_head(const std::string& head) {
  auto names = preset_names();
  for (const char* name : {"bf16-ring", "fp16-ring", "fp32-ring", "bf16-split", "bf16-decode"}) {
    names.push_back(name);
  }
  return hint(head, names);
}

Head parse_head(const std::string& head, const std::string& name) {
  Head result;
  result.preset = head;
  const auto drop_last = [&](std::size_t dash) { result.preset.resize(dash); };
  const auto dash_of_last = [&] { return result.preset.rfind('-'); };
  std::size_t dash = dash_of_last();
  if (dash != std::string::npos && result.preset.substr(dash) == "-lowp") {
    result.low_precision = true;
    drop_last(dash);
    dash = dash_of_last();
  }
  std::string word;
  std::int64_t number = 0;
  if (dash != std::string::npos && split_number(result.preset.substr(dash + 1), word, number) &&
      (word == "split" || word == "decode" || word == "ring")) {
    result.kind = word;
    result.partials = number;
    drop_last(dash);
  }
  if (result.preset == "bf16" || result.preset == "fp16") result.preset += "-flash";
  if (!presets().contains(result.preset)) {
    throw BadInput("contract: unknown name " + in_quotes(name) + hint_at_head(head));
  }
  if (result.low_precision && result.kind != "ring") {
    throw BadInput("contract: " + in_quotes(name) + ": -lowp needs -ring");
  }
  return result;
}

/// The unit roundoff of the 16-bit type the contract's inputs have; null if they have none.
const char* unit_of_16_bit(const Json& contract) {
  const auto dtype = contract.at("inputs").at("dtype").get<std::string>();
  return dtype == "bf16" ? "0x1p-8" : dtype == "fp16" ? "0x1p-11" : nullptr;
}

std::string low_unit(const Json& contract) {
  const char* unit = unit_of_16_bit(contract);
  return unit ? unit : "0x1p-24";
}

void apply_head(Json& contract, const Head& head) {
  if (head.kind.empty()) return;
  const Json single = contract["softmax"]["u"];
  const Json count = head.partials > 0 ? Json(head.partials) : Json("spec");
  Json& partials = contract["partials"];
  partials["count"] = count;
  for (const char* field : {"o_u", "run_u", "lse_u"}) partials[field] = single;
  if (head.kind == "split") partials["merge"] = {"unnormalized"};
  if (head.kind == "decode") partials["merge"] = {"lse_once"};
  if (head.kind == "ring") {
    partials["merge"] = {"unnormalized", "lse_sequential"};
    contract["backward"]["ring"] = {{"count", count}, {"acc_u", single}, {"store_u", single}};
  }
  if (head.low_precision) {
    const std::string unit = low_unit(contract);
    partials["o_u"] = partials["run_u"] = unit;
    contract["backward"]["ring"]["store_u"] = unit;
  }
}

/// The accumulator with sums of `block` terms started from zero, whatever model adds inside a
/// block.
Json blocked(const Json& accumulator, std::int64_t block, const Json& u) {
  const auto around = [&](const Json& inner) {
    return Json{{"model", "blocked"}, {"block", block}, {"u", u}, {"inner", inner}};
  };
  if (accumulator.at("model") != "max") return around(accumulator);
  Json alternatives = Json::array();
  for (const auto& inner : accumulator.at("of")) alternatives.push_back(around(inner));
  return {{"model", "max"}, {"of", alternatives}};
}

void flush_to_zero(Json& contract) {
  const char* smallest = "0x1p-126";
  contract["score"]["eta"] = smallest;
  contract["softmax"]["exp_eta"] = smallest;
  for (const char* part : {"l", "pv", "partials"}) contract[part]["eta"] = smallest;
  Json& backward = contract["backward"];
  for (const char* field : {"dp_eta", "D_eta", "grad_eta"}) backward[field] = smallest;
  // P and dS are in fp32 only where they are not cast.
  if (contract["p"]["u"] == "0") contract["p"]["eta"] = smallest;
  if (backward["ds_u"] == "0") backward["ds_eta"] = smallest;
  contract["out"]["ftz"] = true;
}

struct Variant {
  const char* word;
  bool numbered;
  void (*apply)(Json& contract, std::int64_t number);
};

const Variant variants[] = {
    {"block", true, [](Json& c, std::int64_t n) { c["softmax"]["block"] = n; }},
    {"acc", true,
     [](Json& c, std::int64_t n) {
       const Json u = c["softmax"]["u"];
       for (const char* part : {"pv", "l"}) c[part]["acc"] = blocked(c[part]["acc"], n, u);
       c["backward"]["grad_acc"] = blocked(c["backward"]["grad_acc"], n, u);
     }},
    {"keys", true, [](Json& c, std::int64_t n) { c["partials"]["max_keys"] = n; }},
    {"asc", false, [](Json& c, std::int64_t) { c["softmax"]["order"] = "ascending"; }},
    {"desc", false, [](Json& c, std::int64_t) { c["softmax"]["order"] = "descending"; }},
    {"sigmoid", false, [](Json& c, std::int64_t) { c["partials"]["merge"] = {"lse_sigmoid"}; }},
    {"run32", false, [](Json& c, std::int64_t) { c["partials"]["run_u"] = "0x1p-24"; }},
    {"ftz", false, [](Json& c, std::int64_t) { flush_to_zero(c); }},
    {"exp13", false,
     [](Json& c, std::int64_t) {
       c["softmax"]["exp_rel"] = "0x1p-13";
       c["softmax"]["exp_zero"] = "approx";
     }},
    {"sumcast", false, [](Json& c, std::int64_t) { c["p"]["sum_from"] = "cast"; }},
    {"softcap", false,
     [](Json& c, std::int64_t) { c["score"]["softcap"]["tanh_rel"] = "0x1p-10"; }},
    {"bias", false, [](Json& c, std::int64_t) { c["score"]["bias_roundings"] = 2; }},
    {"biasstore", false, [](Json& c, std::int64_t) { c["score"]["bias_store"] = {low_unit(c)}; }},
    {"isolated", false, [](Json& c, std::int64_t) { c["backward"]["mode"] = "isolated"; }},
    // Last, because it reads the block length that another variant may set.
    {"gacc", true,
     [](Json& c, std::int64_t n) {
       Json& ring = c["backward"]["ring"];
       ring["count"] = {{"rows", n}, {"keys", c["softmax"]["block"]}};
       ring["store_u"] = low_unit(c);
     }},
};

/// "exp13" ends in digits that are part of the word; every other number is a parameter.
const Variant& find_variant(const std::string& text, const std::string& name,
                            std::int64_t& number) {
  std::string word;
  const bool plain = split_number(text, word, number);
  std::vector<std::string> known;
  for (const auto& variant : variants) {
    if (text == variant.word && !variant.numbered) return variant;
    if (variant.numbered && word == variant.word && plain && number > 0) return variant;
    known.push_back(std::string("+").append(variant.word).append(variant.numbered ? "64" : ""));
  }
  throw BadInput("contract: " + in_quotes(name) + ": unknown variant " + in_quotes("+" + text) +
                 hint("+" + text, known));
}

void apply_variants(Json& contract, const std::vector<std::string>& texts, const Head& head,
                    const std::string& name) {
  struct Chosen {
    const Variant* variant;
    std::int64_t number;
  };
  std::vector<Chosen> chosen;
  std::set<std::string> seen;
  for (const auto& text : texts) {
    Chosen choice{};
    choice.variant = &find_variant(text, name, choice.number);
    const std::string word = choice.variant->word;
    const bool order = word == "asc" || word == "desc";
    if (!seen.insert(order ? "asc or desc" : word).second) {
      throw BadInput("contract: " + in_quotes(name) + ": variant " + in_quotes("+" + text) +
                     " contradicts an earlier one");
    }
    chosen.push_back(choice);
  }
  if (seen.contains("gacc") && (head.kind == "ring" || !unit_of_16_bit(contract))) {
    throw BadInput("contract: " + in_quotes(name) + ": +gacc needs a 16-bit preset without -ring");
  }
  std::stable_partition(chosen.begin(), chosen.end(), [](const Chosen& choice) {
    return choice.variant->word != std::string("gacc");
  });
  for (const auto& choice : chosen) choice.variant->apply(contract, choice.number);
}

Json expand_name(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first <= name.size();) {
    const std::size_t plus = std::min(name.find('+', first), name.size());
    parts.push_back(name.substr(first, plus - first));
    first = plus + 1;
  }
  const Head head = parse_head(parts.front(), name);
  Json contract = expand_preset(head.preset);
  apply_head(contract, head);
  apply_variants(contract, {parts.begin() + 1, parts.end()}, head, name);
  contract["name"] = name;
  return contract;
}

constexpr std::string_view kChanged = ", changed";

/// The name that an object gives itself. One that belongs to another contract would say that this
/// contract has accepted an answer, so it is not taken as it stands.
std::string name_in(const Json& object) {
  if (!object.contains("name") || !object.at("name").is_string()) return {};  // refused later
  std::string name = object.at("name");
  try {
    if (expand_name(name) != object) name += kChanged;
  } catch (const BadInput&) {  // no name of ours
  }
  return name;
}

ExpandedContract named(const std::string& name) { return {expand_name(name), name}; }

ExpandedContract expand_object(Json object) {
  if (!object.is_object()) throw BadInput("contract: a name or an object is needed");
  if (!object.contains("base")) {
    std::string name = name_in(object);
    return {std::move(object), std::move(name)};
  }
  const Json base = std::move(object["base"]);
  object.erase("base");
  ExpandedContract full = base.is_string() ? named(base.get<std::string>()) : expand_object(base);
  const Json unchanged = full.fields;
  merge_into(full.fields, object);
  if (object.contains("name")) {
    full.shown_name = name_in(full.fields);
  } else if (full.fields != unchanged && !full.shown_name.ends_with(kChanged)) {
    full.shown_name += kChanged;
  }
  return full;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& item : presets().items()) names.push_back(item.key());
  return names;
}

ExpandedContract expand_contract(const std::string& name_or_json) {
  const std::size_t first = name_or_json.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (name_or_json[first] == '{' || name_or_json[first] == '"')) {
    const Json parsed = parse_json(name_or_json, "contract", {.depth = 16, .values = 4096});
    return parsed.is_string() ? named(parsed.get<std::string>()) : expand_object(parsed);
  }
  return named(name_or_json);
}

}  // namespace ringproof::oracle
