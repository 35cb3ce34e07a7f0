// From a contract's name, or from an object with "base", to the full JSON object: docs/contract.md,
// sections "names" and "presets". Reading the object is contract_json.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace ringproof::oracle {

/// presets.json, embedded when the project is configured.
extern const std::string_view presets_text;

/// The full object that a name or an object stands for, "spec" values not replaced. Fields and
/// types are not checked here, except as far as names and variants need them.
nlohmann::json expand_contract(const std::string& name_or_json);

}  // namespace ringproof::oracle
