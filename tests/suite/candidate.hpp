// A kernel under the suite: one plain struct. Whatever the kernel is written in, an adapter turns
// it into this (candidate_library.hpp, candidate_command.hpp); a C++ callable needs no more than
//
//   Candidate candidate{.name = "mine", .run = [](void*, const ringproof_problem* problem,
//                                                 ringproof_answer* answer) { ...; return 0; }};
//
// Not here: what the kernel must fulfil (law.hpp), and how its answers are judged (trial.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "oracle/ringproof.h"
#include "tests/suite/feature.hpp"

namespace ringproof::suite {

/// How a call ended without an answer that could be read.
enum class Death { none, ended, hung };

/// The kernel crashed, hung, or gave no answer that could be read: reported, never fatal.
struct KernelDied : std::runtime_error {
  explicit KernelDied(const std::string& what, Death how = Death::ended)
      : std::runtime_error(what), death(how) {}
  Death death;
};

/// What a kernel promises beyond its numeric contract; only what is promised is tested.
struct Promises {
  bool deterministic = true;     // the same call gives the same bits
  bool batch_invariant = false;  // a row's bits do not depend on the rows computed beside it
};

struct Candidate {
  std::string name{};
  /// 0: answered; anything else: this problem is not supported, and the answer is not looked at.
  /// May throw KernelDied. Problem and answer lie in `memory` where that is not empty.
  int (*run)(void* context, const ringproof_problem*, ringproof_answer*) = nullptr;
  void* context = nullptr;
  std::span<std::byte> memory{};  // shared with the process that runs the kernel; empty: anywhere
  Features support{};             // filled by probe() for a kernel that cannot say
  Promises promises{};
};

}  // namespace ringproof::suite
