// What a generated problem could refuse under one contract, measured by judging its exact answers:
// they must PASS, and the power line of that PASS is the power of the case. A case whose exact
// answers only reach UNDECIDED proves nothing about anybody's kernel, and is not written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "oracle/generate/generated_case.hpp"
#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

struct CasePower {
  std::string contract;
  std::string refusal;           // why the case has no power, or empty
  std::string gradient_refusal;  // why its gradients have none, or empty
  double gain = 0;               // smallest certified gain error; infinity: none
  double missing_mass_lse = 1, missing_mass_out = 1;
  std::int64_t missing_block = 0;
  std::int64_t rows = 0, elements = 0;
};

/// Judges the correctly rounded exact answers. Throws std::logic_error if they are refused: that
/// would be a mistake of the judge.
CasePower power_of(const GeneratedCase&, const std::string& contract, const WalkOptions&);

/// As it stands in the file; infinities are left out.
nlohmann::json to_json(const CasePower&);

/// The exact answers of a case, each rounded to nearest: out and the gradients in the contract's
/// output type, lse in binary32 (binary64 for a binary64 contract).
std::vector<OwnedTensor> exact_answers(const GeneratedCase&, const Contract&, const WalkOptions&);

}  // namespace ringproof::oracle
