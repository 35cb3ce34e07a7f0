// Reading contracts.json (contract_cases.hpp).
#include "tests/adversary/contract_cases.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace ringproof::adversary {
namespace {

using Json = nlohmann::json;

const Json& contracts() {
  static const Json parsed = [] {
    std::ifstream file(RINGPROOF_ADVERSARY_CONTRACTS);
    return Json::parse(file);
  }();
  return parsed;
}

/// Fields of `over` replace those of `under`; lists and acc objects are replaced as a whole.
void overlay(Json& under, const Json& over) {
  for (const auto& [key, value] : over.items()) {
    const bool merges = value.is_object() && !value.contains("model") && under.contains(key) &&
                        under[key].is_object();
    if (merges) {
      overlay(under[key], value);
    } else {
      under[key] = value;
    }
  }
}

Family family_named(const std::string& text) {
  for (const Family family : all_families())
    if (name(family) == text) return family;
  throw std::logic_error("contracts.json: no such family: " + text);
}

ContractCase case_of(const Json& entry) {
  Json object = Json::object();
  for (const Json& layer : entry.at("layers"))
    overlay(object,
            layer.is_string() ? contracts().at("layers").at(layer.get<std::string>()) : layer);
  ContractCase result;
  result.name = entry.at("name");
  result.kernel = object.dump();
  if (entry.contains("without")) overlay(object, entry["without"]);
  result.judged = object.dump();
  if (entry.contains("row")) {
    const Json& row = entry["row"];
    result.row.softcap = row.value("softcap", 0.0);
    result.row.bias = row.value("bias", false);
    result.row.alibi = row.value("alibi", false);
    result.row.sinks = row.value("sinks", true);
  }
  result.may_know_ring = entry.value("known_ring", false);
  result.gross_only = entry.value("gross_only", false);
  result.families = all_families();
  if (entry.contains("families")) {
    result.families.clear();
    for (const Json& family : entry["families"]) result.families.push_back(family_named(family));
  }
  return result;
}

std::vector<ContractCase> cases(const char* group) {
  std::vector<ContractCase> list;
  for (const Json& entry : contracts().at(group)) list.push_back(case_of(entry));
  return list;
}

}  // namespace

std::vector<ContractCase> preset_cases() { return cases("presets"); }
std::vector<ContractCase> big_unit_cases() { return cases("big units"); }
std::vector<ContractCase> field_cases() { return cases("one field at a time"); }
std::vector<ContractCase> trap_cases() { return cases("traps"); }
std::vector<ContractCase> backward_cases() { return cases("gradients"); }
std::vector<ContractCase> backward_field_cases() { return cases("gradients, one field at a time"); }
std::vector<ContractCase> backward_trap_cases() { return cases("gradients, traps"); }

oracle::Contract emulator_twin(const oracle::Contract& contract) {
  oracle::Contract twin = oracle::read_contract("fp64", oracle::Spec{});
  twin.partials.count = contract.partials.count;
  twin.partials.merge = contract.partials.merge;
  twin.partials.o_u = twin.partials.run_u = twin.partials.lse_u = 0x1p-53;
  twin.softmax.lazy = contract.softmax.lazy;
  twin.softmax.lazy_log2 = contract.softmax.lazy_log2;
  twin.score.sink_roundings = 2;
  return twin;
}

}  // namespace ringproof::adversary
