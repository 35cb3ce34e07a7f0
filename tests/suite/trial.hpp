// Calling the kernel and judging what it says: the tools laws are written with.
// Comparison inside a contract is the judge's (truth and derived bound of each problem); equality
// of bits is demanded only where a law is exact. Every call also checks that inputs and guard bytes
// are as they were.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/suite/candidate.hpp"
#include "tests/suite/draw.hpp"
#include "tests/suite/layout.hpp"

namespace ringproof::suite {

/// Numbers of the answers by name, in canonical order [B, H, N, D].
using Answer = std::map<std::string, std::vector<double>>;

/// A law is broken: how, and on which problem with which answer.
struct Failure {
  std::string what;
  Draft draft;
  Answer answer;
  Death death = Death::none;  // the kernel's, if that is what broke it
};

/// The kernel said that it does not support the problem.
struct NotSupported {
  Features asked;
};

/// Which answers the judge decided on at least once, and why it could not decide on others.
struct Judgements {
  std::map<std::string, long> decided{};           // by answer: "out", "dq"
  std::map<std::string, std::string> undecided{};  // the last reason

  /// An answer that was never decided, with the reason; empty if there is none.
  std::string never_decided() const;
};

/// What a problem asks of a kernel.
Features features_of(const Draft&);

class Trial {
 public:
  /// The contract is a name or a JSON object. Throws oracle::BadInput if it is none.
  Trial(const Candidate&, std::string contract);

  const Candidate& candidate() const { return candidate_; }
  const std::string& contract() const { return contract_; }
  const Types& types() const { return types_; }
  bool can(Feature feature) const { return sizes_.support.has(feature); }
  const Sizes& sizes() const { return sizes_; }
  Sizes& sizes() { return sizes_; }
  long calls() const { return calls_; }
  Judgements& judgements() { return judgements_; }
  /// Called before every call of the kernel: whoever waits wants to see that something happens.
  void before_calls(std::function<void()> hook) { before_call_ = std::move(hook); }

  Draft draw(const Description& description) const {
    return suite::draw(description, sizes_, types_);
  }
  /// The kernel's answer. Throws NotSupported, KernelDied, Failure.
  Answer run(const Draft&, Fill = Fill::nan);
  /// The kernel's answer, judged under the contract.
  Answer judged(const Draft&);
  /// Judges an answer, whoever gave it; `contract`: another one than the kernel's.
  void judge(const Draft&, const Answer&, const std::string& contract = {}) const;
  /// Demands equal bits (a NaN equals a NaN) of the named answers, or of all. Where two equal calls
  /// of the draft differ anyway, the failure says so, and not `what`.
  void same_bits(const Draft&, const Answer& got, const Answer& expected, const std::string& what,
                 const std::vector<std::string>& names = {});
  /// The answers a call with these features would give, without calling.
  Wanted wanted(const Draft&) const;

  /// The problem and an answer as a case file that `ringproof check` judges.
  void write(const std::string& path, const Draft&, const Answer&) const;

 private:
  oracle::Case as_case(const Laid&) const;
  bool repeats(const Draft&);

  Candidate candidate_;
  std::string contract_;
  Types types_;
  Wanted wanted_;
  Sizes sizes_;
  long calls_ = 0;
  std::function<void()> before_call_;
  mutable Judgements judgements_;
};

}  // namespace ringproof::suite
