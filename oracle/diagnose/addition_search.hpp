// The part of the search over rules of the backward pass that dbias and dsinks need: both are sums
// over KV heads, so that nothing can be compared before all of these have been visited. First the
// worst elements, which refute nearly every candidate, then those that are left as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/diagnose/comparison.hpp"
#include "oracle/diagnose/gradient_additions.hpp"
#include "oracle/diagnose/gradient_mutant.hpp"

namespace ringproof::oracle {

/// A gradient that is judged, and how it is stored.
struct JudgedGradientAnswer {
  const Tensor* answer = nullptr;
  OutputRule rule;
  bool refused = false;
};

struct JudgedGradients {
  JudgedGradientAnswer dq, dk, dv, dbias, dsinks;

  bool refused() const {
    return dq.refused || dk.refused || dv.refused || dbias.refused || dsinks.refused;
  }
};

/// A mistake while nothing refutes it.
struct Candidate {
  GradientMutant mutant;
  std::int64_t elements = 0, open = 0;  // compared; of them those of which nothing is known
  bool refuted = false;
  std::optional<AdditionSums> dbias{}, dsinks{};  // while they are added up
};

class AdditionSearch {
 public:
  AdditionSearch(const Subject&, const JudgedGradients&, const Report&);

  /// What follows adds up the worst elements of this candidate.
  void start_worst(Candidate&) const;
  static void add(const GradientPairs&, Candidate&);
  /// All KV heads are in.
  void compare(Candidate&) const;
  /// The candidates that are left, so many together as memory allows.
  void compare_whole(std::vector<Candidate>&) const;

 private:
  void start_whole(Candidate&) const;
  BiasBudget budget(const Candidate&) const;

  const Subject& subject_;
  const JudgedGradients& answers_;
  std::optional<std::int64_t> worst_bias_, worst_sink_;
};

}  // namespace ringproof::oracle
