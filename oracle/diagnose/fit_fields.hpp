// The fields of a contract that a fit may loosen, each as a ladder of values, tightest first.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::oracle {

/// Values of one field, or of fields that only make sense together; a rung is a JSON object that is
/// merged into the contract.
struct FieldLadder {
  std::string field;
  std::vector<nlohmann::json> rungs;
  bool loosens = true;  // every rung allows more than the one before, the first more than the
                        // declared contract; false: rungs are alternatives
};

/// Ladders that may matter for this answer of this case: rungs that leave the declared contract (an
/// expanded object) as it is, or tighten it, are left out.
std::vector<FieldLadder> field_ladders(const Case&, const nlohmann::json& declared, AnswerKind);

/// `contract` with the rung's fields in place of its own; objects merge, accumulators and lists are
/// replaced whole.
nlohmann::json merged_contract(const nlohmann::json& contract, const nlohmann::json& rung);

/// "path": values of the leaves in which two contracts differ, as text of the second.
std::vector<std::pair<std::string, std::string>> differing_fields(const nlohmann::json& from,
                                                                  const nlohmann::json& to);

}  // namespace ringproof::oracle
