// A kernel behind a command line: `./k {in} {out}` turns a case file into an answered one. Exit
// status 77 means "not supported"; any other but 0, a signal, or no answer in time is reported.
// Case files stand in a folder of their own that is removed with this object, also after Ctrl-C.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/suite/candidate.hpp"

namespace ringproof::suite {

class Command {
 public:
  /// Throws oracle::BadInput unless the line holds {in} and {out}.
  Command(std::string line, std::chrono::milliseconds limit);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  Candidate candidate();

 private:
  int run(const ringproof_problem*, ringproof_answer*);
  int wait_for(int process);
  std::string last_line() const;

  std::string line_;
  std::chrono::milliseconds limit_;
  std::filesystem::path folder_;
};

}  // namespace ringproof::suite
