// The contracts the adversary attacks, from contracts.json: the presets as they stand; "big-u"
// contracts whose unit roundoff is 2^-10 in place of 2^-24 (there second-order terms and terms in
// |m|
// are first-class); one field at a time, everything else exact; and traps, judged with a term
// missing.
#pragma once

#include <string>
#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/adversary/families.hpp"

namespace ringproof::adversary {

struct ContractCase {
  std::string name;
  std::string kernel;            // JSON object of the contract that is emulated
  std::string judged;            // the same, or with something left out
  RowOptions row;                // what the contract brings into play
  bool may_know_ring = false;    // T1R applies: half of the rows declare their ring
  bool gross_only = false;       // the emulator is no more precise than the contract
  std::vector<Family> families;  // where a missing term shows; else all of them
};

std::vector<ContractCase> preset_cases();
std::vector<ContractCase> big_unit_cases();
/// `judged` lacks the field: judged as emulated the bound must hold, judged so it must break.
std::vector<ContractCase> field_cases();
std::vector<ContractCase> trap_cases();
/// The same for gradients.
std::vector<ContractCase> backward_cases();
std::vector<ContractCase> backward_field_cases();
std::vector<ContractCase> backward_trap_cases();

/// The same structure with every rounding one of binary64: what the emulator itself may err.
oracle::Contract emulator_twin(const oracle::Contract&);

}  // namespace ringproof::adversary
