// The contracts the adversary attacks, as JSON that read_contract() takes: the presets as they stand,
// "big-u" contracts whose unit roundoff is 2^-10 in place of 2^-24 (there second-order terms and terms
// in |m| are first-class), and "one field at a time": everything exact except one field.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/adversary/families.hpp"

namespace ringproof::adversary {

struct ContractCase {
  std::string name;
  std::string json;     // a name or an object
  RowOptions row = {};  // what the contract brings into play; `partials` comes from the contract
  bool may_know_ring = false;  // T1R applies: half of the rows declare their ring
  bool gross_only = false;     // the emulator is no more precise than the contract
};

std::vector<ContractCase> preset_cases();
std::vector<ContractCase> big_unit_cases();

/// One field alone; `without` removes it from the judge's copy of the contract.
struct FieldCase {
  ContractCase contract;
  std::function<void(oracle::Contract&)> without;
};
std::vector<FieldCase> field_cases();

/// The contract of a case.
oracle::Contract read(const ContractCase&);
/// The same structure with every rounding one of binary64: what the emulator itself may err.
oracle::Contract emulator_twin(const oracle::Contract&);

}  // namespace ringproof::adversary
