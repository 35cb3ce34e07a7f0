// Which contracts accept an answer, asked many times. A contract is tried first where the declared
// one is furthest off; one that stands there is judged everywhere before it is reported, and what
// refutes it then joins the places where all others are tried.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oracle/diagnose/known_truth.hpp"

namespace ringproof::oracle {

class ContractSearch {
 public:
  /// `declared` is what check() said under the contract.
  ContractSearch(const Case&, const Contract&, const CheckOptions&, const Report& declared);

  /// False if some place that was looked at so far refuses one of these answers. `contract`: a name
  /// or JSON text.
  bool accepts(const std::string& contract, const std::vector<AnswerKind>&);
  /// True if check() would pass these answers, with power. `loosens`: every bound is at least that
  /// of the declared contract, so that only what that refused can be refused.
  bool confirm(const std::string& contract, const std::vector<AnswerKind>&, bool loosens);
  /// Geometric mean of the contract's bounds over those of the declared one, over the answers (each
  /// counts alike) where their errors are largest.
  double widening(const std::string& contract);
  /// Contracts tried.
  std::int64_t tried() const { return static_cast<std::int64_t>(contracts_.size()); }
  const std::vector<AnswerKind>& kinds() const { return kinds_; }
  bool judges_gradients() const;

 private:
  struct Trial {
    const Contract* contract = nullptr;        // nullptr: not of this case
    std::map<AnswerKind, bool> no{};           // true: refused; false: accepted everywhere
    std::map<AnswerKind, double> log_bound{};  // mean over the first places
  };
  Trial& trial(const std::string& contract);
  bool passes_check(const Contract&, AnswerKind) const;
  bool confirm(Trial&, AnswerKind, bool loosens);
  void rank_places(const Contract&);
  /// The truth for contracts of this one's mode; the rows have the same numbers in all.
  const KnownTruth& known(const Contract&);

  const Case& input_;
  CheckOptions options_;
  const Report& declared_;
  std::vector<AnswerKind> kinds_;  // that are judged
  // As far as asked for; in isolated mode the base of the given LSE counts, too.
  std::map<std::pair<BackwardMode, LseBase>, std::unique_ptr<KnownTruth>> known_{};
  std::map<AnswerKind, Places> first_;    // where the declared contract is furthest off
  std::map<AnswerKind, Places> refused_;  // all that it refuses
  std::map<AnswerKind, Places> against_;  // what refuted contracts that stood at the first ones
  std::map<AnswerKind, double> declared_log_bound_;
  std::map<std::string, Contract> read_;
  std::map<std::string, Trial> contracts_;
};

}  // namespace ringproof::oracle
