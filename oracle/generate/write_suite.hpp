// A suite as a folder of problem files and `suite.json`, which lists them with their digests, their
// flags and what the flags mean. The folder appears complete or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oracle/generate/generated_case.hpp"
#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

struct SuiteOptions {
  std::uint64_t seed = 1;
  bool certify = true;  // measure power and kills; without, cases carry their flags alone
  WalkOptions walk;     // its progress counts cases here
};

struct SuiteSummary {
  std::int64_t written = 0;
  std::vector<std::string> refused;            // "CASE: why it has no power"
  std::vector<std::string> without_gradients;  // "CASE: why its gradients have none"
};

/// A case with flags, power and certified kills in its `about`; `refusal` says why it has no power
/// under one of its contracts, or nothing. Where gradients alone have none, the case goes without
/// upstream gradients, and says why.
struct CertifiedCase {
  GeneratedCase generated;
  std::string refusal, without_gradients;
};
CertifiedCase certified_case(const Recipe&, const SuiteOptions&);
/// The same without the kills.
CertifiedCase case_with_power(const Recipe&, const SuiteOptions&);

/// Writes the suite. Throws BadInput if the folder exists and is not empty, or cannot be written.
SuiteSummary write_suite(std::string_view suite, const std::string& folder, const SuiteOptions&);

}  // namespace ringproof::oracle
