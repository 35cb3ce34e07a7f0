// A kernel in a shared object: `int ringproof_candidate_v1(const ringproof_problem*,
// ringproof_answer*)`.
// It runs in a process of its own that answers one call after the other, so that a crash or a hang
// ends that process and not the suite; the next call gets a new one. Problems lie in memory that
// both processes share at the same address: nothing is copied.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "tests/suite/candidate.hpp"

namespace ringproof::suite {

class Library {
 public:
  /// Throws oracle::BadInput if the object cannot be opened or exports no candidate.
  Library(const std::string& path, std::chrono::milliseconds limit);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  Candidate candidate();

 private:
  int run(const ringproof_problem*, ringproof_answer*);
  void start();
  void stop();
  [[noreturn]] void report_death();

  std::string path_;
  std::chrono::milliseconds limit_;
  std::span<std::byte> memory_;
  pid_t process_ = -1;
  int to_kernel_ = -1, from_kernel_ = -1;
};

}  // namespace ringproof::suite
