// The suite: every law on problems drawn from consecutive seeds; what breaks one is shrunk, written
// as a case file, and reported with the command that repeats it.
//
//   Trial trial(candidate, "fp32");
//   const Outcome outcome = run_suite(trial, {.count = 5}, std::cout, probe(trial));
//   return exit_code(outcome);
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/suite/law.hpp"
#include "tests/suite/probe.hpp"

namespace ringproof::suite {

/// Where a run is; `law` is empty at the end.
struct Progress {
  int laws_done = 0, laws = 0;
  std::string_view law{};
  int problem = 0, problems = 0;  // of this law
  bool shrinking = false;
  long calls = 0;
};

struct SuiteOptions {
  std::uint64_t seed = 1;
  int count = 3;                            // problems a law; problem n has seed + n
  std::vector<std::string> only{};          // as choose_laws() takes them
  Features require{};                       // a kernel without these fails
  std::chrono::milliseconds shrink{10000};  // at most so long for each broken law; 0: not at all
  std::string folder = "ringproof-failures";
  std::string command = "ringproof suite";          // the words that name kernel and contract again
  std::function<void(const Progress&)> progress{};  // before every call, and once at the end
};

/// The laws that the words name: the law of this id, else those whose ids begin so; no word: all.
/// Throws oracle::BadInput if a word names none.
std::vector<const Law*> choose_laws(const std::vector<std::string>& words);

enum class Word { pass, fail, undecided, skipped };
std::string_view text_of(Word);

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
  Features unknown{};  // the kernel died when it was asked for them
  int not_run = 0;     // laws left out because the kernel hung too often
};

/// Runs the laws and writes a line for each as it ends, then a summary. A kernel that did not live
/// through the probe is reported once, and no law runs. Throws as choose_laws() does.
Outcome run_suite(Trial&, const SuiteOptions&, std::ostream&, const Probed& = {.plain = true});

/// 0 PASS, 1 FAIL, 3 UNDECIDED, 77 SKIPPED: the worst law.
int exit_code(const Outcome&);

/// The description that a law gets for a seed, and its shrinks.
rc::Shrinkable<Description> describe_case(const Law&, const Sizes&, std::uint64_t seed);

}  // namespace ringproof::suite
