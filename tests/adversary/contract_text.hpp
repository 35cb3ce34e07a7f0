// JSON objects of contracts in layers: each layer replaces fields of those before it, lists and acc
// objects as a whole (the rule of docs/contract.md, section 2).
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace ringproof::adversary {

inline void overlay(nlohmann::json& under, const nlohmann::json& over) {
  for (const auto& [key, value] : over.items()) {
    const bool merges = value.is_object() && !value.contains("model") && under.contains(key) &&
                        under[key].is_object();
    if (merges)
      overlay(under[key], value);
    else
      under[key] = value;
  }
}

inline std::string layered(const std::vector<std::string>& layers) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string& layer : layers) overlay(object, nlohmann::json::parse(layer));
  return object.dump();
}

}  // namespace ringproof::adversary
