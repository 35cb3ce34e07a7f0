// The suite inside a test program of one's own: the kernel is a C++ callable.
#include <iostream>

#include "tests/suite/suite.hpp"

extern "C" int ringproof_candidate_v1(const ringproof_problem*, ringproof_answer*);

int main() {
  using namespace ringproof::suite;
  Candidate kernel{.name = "attention"};
  kernel.run = [](void*, const ringproof_problem* problem, ringproof_answer* answer) {
    return ringproof_candidate_v1(problem, answer);
  };
  Trial trial(kernel, "fp32");
  return exit_code(run_suite(trial, {.count = 1}, std::cout, probe(trial)));
}
