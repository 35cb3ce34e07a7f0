// The certified mutation score as a table of the documentation (mutation_score.hpp): one line for
// each fault of the notes, one column for each contract.
#include <algorithm>

#include "oracle/case/sha256.hpp"
#include "oracle/generate/generated_case.hpp"
#include "oracle/generate/mutation_score.hpp"
#include "oracle/generate/notes.hpp"
#include "oracle/generate/suite.hpp"

namespace ringproof::oracle {
namespace {

/// "killed / changing" of one fault under one contract; empty where no form changes an answer.
std::string cell(const ContractScore& score, const std::string& fault) {
  const auto place = score.classes.find(fault);
  if (place != score.classes.end() && score.forms(fault) > 0) {
    return std::to_string(score.killed(fault)) + " / " + std::to_string(score.forms(fault));
  }
  const auto other = score.also.find(fault);
  if (other == score.also.end() || !other->second.differs) return "";
  return other->second.killed ? "killed" : "not killed";
}

/// Why a fault has no cell in any column.
std::string reason(const std::string& fault) {
  const nlohmann::json& reasons = notes().at("without certificates");
  return reasons.contains(fault) ? reasons.at(fault).get<std::string>()
                                 : "no form of it changes an answer on any case";
}

void add_line(const std::vector<std::string>& cells, std::string& text) {
  text += "|";
  for (const std::string& one : cells) text += " " + one + " |";
  text += "\n";
}

}  // namespace

std::string to_table(const std::vector<ContractScore>& scores) {
  std::vector<std::string> head{"fault"}, rule{"---"}, cases{"cases"};
  for (const ContractScore& score : scores) {
    head.push_back(score.contract);
    rule.emplace_back("---");
    cases.push_back(std::to_string(score.cases));
  }
  std::string text, rest;
  add_line(head, text);
  add_line(rule, text);
  add_line(cases, text);
  for (const auto& [fault, note] : notes().at("faults").items()) {
    std::vector<std::string> cells{fault};
    for (const ContractScore& score : scores) cells.push_back(cell(score, fault));
    const bool some = std::any_of(cells.begin() + 1, cells.end(),
                                  [](const std::string& one) { return !one.empty(); });
    if (some) {
      add_line(cells, text);
    } else {
      rest += "* " + fault + ": " + reason(fault) + "\n";
    }
  }
  return text + "\n" + rest;
}

std::string digest_of(std::string_view name, std::uint64_t seed) {
  std::string digests;
  for (const Recipe& recipe : suite(name)) {
    for (const OwnedTensor& tensor : generate(recipe, seed).tensors) {
      digests += tensor.name + sha256_hex(tensor.bytes);
    }
  }
  return sha256_hex(digests).substr(0, 12);
}

}  // namespace ringproof::oracle
