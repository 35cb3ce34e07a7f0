// Comparing contracts field by field (declared_elsewhere.hpp).
#include "oracle/diagnose/declared_elsewhere.hpp"

#include <algorithm>
#include <cstdlib>

#include "oracle/case/error.hpp"
#include "oracle/contract/contract.hpp"

namespace ringproof::oracle {

namespace {

using nlohmann::json;

bool is_number(const json& value) {
  return value.is_number() || (value.is_string() && value.get<std::string>().starts_with("0"));
}

double number(const json& value) {
  return value.is_number() ? value.get<double>()
                           : std::strtod(value.get<std::string>().c_str(), nullptr);
}

/// Stores one after the other: what they may lose together.
double total(const json& list) {
  double sum = 0;
  for (const json& one : list) sum += number(one);
  return sum;
}

/// Words from the strictest to the loosest one.
bool word_covers(const std::string& word, const std::string& other) {
  if (word == other || word == "any") return true;
  const std::pair<const char*, const char*> kLooser[] = {
      {"approx", "exact"}, {"cast", "uncast"}, {"faithful", "rn"}, {"faithful", "rz"}};
  return std::any_of(std::begin(kLooser), std::end(kLooser),
                     [&](const auto& pair) { return word == pair.first && other == pair.second; });
}

bool value_covers(const std::string& field, const json& value, const json& other) {
  if (value == other) return true;
  if (value == "any") return true;
  if (value.is_array() && other.is_array()) {
    const bool numbers = std::all_of(value.begin(), value.end(), is_number) &&
                         std::all_of(other.begin(), other.end(), is_number);
    if (numbers) return total(value) >= total(other);
    return std::all_of(other.begin(), other.end(), [&](const json& one) {
      return std::find(value.begin(), value.end(), one) != value.end();
    });
  }
  if (field == "count") {
    // Partial sums: any number of them, if the case says how many; of chunks, the shorter ones.
    if (value == "spec") return true;
    if (value.is_object() && other.is_object()) {
      return number(value.at("rows")) <= number(other.at("rows")) &&
             number(value.at("keys")) <= number(other.at("keys"));
    }
    if (value.is_object()) return other == 1;
    if (other.is_object() || other.is_string()) return false;
  }
  if (is_number(value) && is_number(other)) {
    return field == "block" ? number(value) <= number(other) : number(value) >= number(other);
  }
  if (value.is_boolean() && other.is_boolean()) return value.get<bool>() || !other.get<bool>();
  return value.is_string() && other.is_string() && word_covers(value, other);
}

}  // namespace

bool covers(const json& contract, const json& part) {
  for (const auto& [field, value] : part.items()) {
    if (!contract.contains(field)) continue;
    const json& own = contract.at(field);
    const bool inside =
        own.is_object() && value.is_object() && !value.contains("model") && field != "count";
    if (inside ? !covers(own, value) : !value_covers(field, own, value)) return false;
  }
  return true;
}

std::vector<json> shipped_contracts(const std::string& input_type) {
  constexpr const char* kChanges[] = {
      "",          "+exp13", "+sumcast", "+softcap", "+bias",      "+biasstore",      "+ftz",
      "+isolated", "-split", "-ring",    "-decode",  "-ring-lowp", "+block512+gacc32"};
  std::vector<json> contracts;
  for (const std::string& preset : preset_names()) {
    for (const char* change : kChanges) {
      try {
        json contract = json::parse(expanded_json(preset + change));
        if (contract.at("inputs").at("dtype") == input_type) {
          contracts.push_back(std::move(contract));
        }
      } catch (const BadInput&) {  // a variant that this preset cannot have
      }
    }
  }
  return contracts;
}

}  // namespace ringproof::oracle
