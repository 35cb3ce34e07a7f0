// What the tests of the suite share: kernels with one fault each, and one run of the suite on them.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/suite/candidate_library.hpp"
#include "tests/suite/probe.hpp"
#include "tests/suite/suite.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::suite {

/// A folder that is gone when the test ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "ringproof-suite-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

inline std::string kernel(const std::string& fault) {
  return std::string(RINGPROOF_KERNELS) + "/kernel_" + fault + ".so";
}

struct Ran {
  Outcome outcome;
  std::string text;
  std::filesystem::path failures;
  std::string why() const {  // of the first broken law
    for (const LawResult& law : outcome.laws) {
      if (law.word == Word::fail) return law.reason;
    }
    return "";
  }
  int count(Word word) const {
    int laws = 0;
    for (const LawResult& law : outcome.laws) laws += law.word == word ? 1 : 0;
    return laws;
  }
};

inline Ran run_kernel(const std::string& path, const Folder& folder, const std::string& contract,
                      SuiteOptions options = {}) {
  Library library(path, std::chrono::milliseconds(300));
  Trial trial(library.candidate(), contract);
  REQUIRE(probe(trial));
  options.folder = folder.path / "failures";
  options.shrink = std::chrono::milliseconds(2000);
  std::ostringstream stream;
  Ran ran;
  ran.outcome = run_suite(trial, options, stream);
  ran.text = stream.str();
  ran.failures = options.folder;
  return ran;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ringproof::suite
