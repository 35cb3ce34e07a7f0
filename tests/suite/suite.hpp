// The suite: every law on problems drawn from consecutive seeds; what breaks one is shrunk, written
// as a case file, and reported with the command that repeats it.
//
//   Trial trial(candidate, "fp32");
//   if (probe(trial)) {
//     const Outcome outcome = run_suite(trial, {.count = 5}, std::cout);
//     return exit_code(outcome);
//   }
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/suite/law.hpp"

namespace ringproof::suite {

struct SuiteOptions {
  std::uint64_t seed = 1;
  int count = 3;                            // problems a law; problem n has seed + n
  std::vector<std::string> only{};          // ids, or their beginnings; empty: all
  Features require{};                       // a kernel without these fails
  std::chrono::milliseconds shrink{10000};  // at most so long for each broken law; 0: not at all
  std::string folder = "ringproof-failures";
  std::string command = "ringproof suite";  // the words that name kernel and contract again
  /// (laws done, laws in all, the one that is running)
  std::function<void(int, int, std::string_view)> progress{};
};

enum class Word { pass, fail, undecided, skipped };

struct LawResult {
  const Law* law = nullptr;
  Word word = Word::pass;
  int problems = 0, unsupported = 0;
  long calls = 0;
  std::string reason{};  // why it is not PASS
};

struct Outcome {
  std::vector<LawResult> laws;
  long calls = 0;
  Features missing_required{};
};

/// Runs the laws and writes a line for each as it ends, then a summary.
Outcome run_suite(Trial&, const SuiteOptions&, std::ostream&);

/// 0 PASS, 1 FAIL, 3 UNDECIDED, 77 SKIPPED: the worst law.
int exit_code(const Outcome&);

/// The description that a law gets for a seed, and its shrinks.
rc::Shrinkable<Description> describe_case(const Law&, const Sizes&, std::uint64_t seed);

}  // namespace ringproof::suite
