// Which known mistakes explain a refused answer: formula (36) of docs/contract.md, read against the
// catalogue of docs/explain.md.
//
//   const Report report = check(input, contract, options);
//   for (const Explanation& one : diagnose(input, contract, options, report).explanations) ...
//
// A class is a mutated truth with its own bounds. It explains the answer only if every judged
// element lies in its box and some element lies outside the truth's; that is consistency, never a
// proof of the mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

struct Explanation {
  std::string id;             // of the class, "NORM-AVERAGE"
  std::string also;           // other ids under which the same function may be filed
  std::string words;          // which form of it
  std::string lse_words;      // what the form says about the LSE, if there was a choice
  std::int64_t elements = 0;  // all of which lie in the class's box
  std::int64_t open = 0;      // of them those of which the class says nothing
  bool estimated = false;     // the contract says nothing of a kernel that could make it
};

struct Diagnosis {
  std::string not_evaluated;              // why nothing was looked at, or empty
  std::vector<Explanation> explanations;  // simplest first
  std::int64_t functions = 0;             // of them those that are another function, not another
                                          // arithmetic; they come first
  std::int64_t refuted = 0;               // forms that some element refutes
  std::int64_t without_theory = 0;        // forms whose assumptions fail on a judged row
  /// Of a long case, where out and LSE are compared on a sample of their rows.
  struct Sample {
    std::int64_t rows = 0, judged = 0;
    std::int64_t refused = 0;  // of the rows, with a refused element
  };
  std::optional<Sample> sample{};
};

/// `report` is what check() said with the same options; nothing is explained unless it refused
/// elements. `field`: error_field() of the same, if it is at hand. WalkOptions::progress counts
/// families of mistakes. The result is the same for every number of threads.
Diagnosis diagnose(const Case&, const Contract&, const CheckOptions&, const Report& report,
                   const ErrorField* field = nullptr);

}  // namespace ringproof::oracle
