// From a contract's name, or from an object with "base", to the full JSON object: docs/contract.md,
// sections "names" and "presets". Reading the object is contract_json.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace ringproof::oracle {

/// presets.json, embedded when the project is configured.
extern const std::string_view presets_text;

struct ExpandedContract {
  nlohmann::json fields;
  /// What verdicts call it: its "name", unless that is another contract's. An object without a name
  /// of its own has its base's in `fields` and is "BASE, changed" here if it says anything else.
  std::string shown_name;
};

/// The full object that a name or an object stands for, "spec" values not replaced. Fields and
/// types are not checked here, except as far as names and variants need them.
ExpandedContract expand_contract(const std::string& name_or_json);

}  // namespace ringproof::oracle
