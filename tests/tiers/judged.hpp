// What every test of a tier needs: a place for files, the way from a case file to a judged answer,
// and answers made by hand.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "oracle/judge/check.hpp"
#include "reference/cli/answer_file.hpp"
#include "reference/ring_backward.hpp"

namespace ringproof::test {

/// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ringproof-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The verdict on a case file under the contract it names, as `ringproof check FILE` gives it.
inline oracle::Report judge_file(const std::string& path) {
  const oracle::Case answered = oracle::read_case(path);
  const oracle::Contract contract =
      oracle::read_contract(answered.problem.spec.contract, answered.problem.spec);
  return oracle::check(answered, contract, {});
}

template <class Real>
void run_reference_in(const reference::CaseInput& input, const reference::RingPlan& plan,
                      const std::string& out, reference::Pass pass) {
  const reference::CaseProblem<Real> owned(input);
  reference::Trace trace;
  if (pass == reference::Pass::forward) {
    write_answer(input, plan, reference::ring_attention(owned.problem(), plan, trace), out);
    return;
  }
  const auto [answer, gradients] =
      reference::ring_attention_backward(owned.problem(), owned.upstream(), plan, trace);
  write_answer(input, plan, answer, out, &gradients);
}

/// Runs a case through the reference ring, as the program does, and writes the answer to `out`.
inline void run_reference(const std::string& problem, const reference::RingPlan& plan,
                          const std::string& out, reference::Pass pass = reference::Pass::forward) {
  const reference::CaseInput input = reference::read_input(problem);
  if (reference::arithmetic_for(input, pass) == reference::Arithmetic::fp64) {
    run_reference_in<double>(input, plan, out, pass);
  } else {
    run_reference_in<float>(input, plan, out, pass);
  }
}

}  // namespace ringproof::test
