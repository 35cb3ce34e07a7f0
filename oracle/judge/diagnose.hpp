// Which known mistakes explain a refused answer: formula (36) of docs/contract.md.
// A class is a mutated truth with its own bounds. It explains the answer only if every judged
// element lies in its box and some element lies outside the truth's; that is consistency, never a
// proof of the mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

struct Explanation {
  std::string id;                   // of the class, "NORM-AVERAGE"
  std::string variant;              // which form of it, in words
  std::string not_evaluated;        // why the class says nothing here, or empty
  std::int64_t elements = 0;        // compared
  std::int64_t outside = 0;         // of them outside the class's box
  std::optional<Element> refuting;  // the first of those
  bool explained = false;
};

/// The classes this build knows, each against the out of the case. `report` is what check() said
/// with the same options; nothing is explained unless it refused elements of out.
std::vector<Explanation> diagnose(const Case&, const Contract&, const CheckOptions&,
                                  const Report& report);

}  // namespace ringproof::oracle
