// What kernels are known to do: the contracts that the project ships, presets with their variants,
// are descriptions of real ones. A change of a field that one of them declares is a likelier answer
// than one that none does.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace ringproof::oracle {

/// True if `contract` allows at least as much as `part` in every field that both have: larger
/// errors, more roundings, more stores, shorter blocks, "any" for a word.
bool covers(const nlohmann::json& contract, const nlohmann::json& part);

/// Every preset of this input type, alone and with one variant or one way to merge parts; expanded.
std::vector<nlohmann::json> shipped_contracts(const std::string& input_type);

}  // namespace ringproof::oracle
