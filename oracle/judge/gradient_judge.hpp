// The judgement of gradients. What belongs to one KV head is judged there (head_judge.hpp), sums
// over several KV heads at the very end.
// Truth from oracle/truth/backward.hpp, bounds (30)-(33) from oracle/contract/backward_bound.hpp,
// acceptance (35) as for out. Not here: how rows are grouped (gradient_walk.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/judge/gradient_tally.hpp"
#include "oracle/judge/row_walk.hpp"
#include "oracle/judge/team.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

/// One gradient that is judged, and how it was stored.
struct JudgedGradient {
  const Tensor* answer = nullptr;  // nullptr: not judged
  OutputRule rule;
};

/// What stays the same for all rows of a check.
struct GradientRules {
  const Problem* problem = nullptr;
  const Contract* contract = nullptr;
  Upstream upstream;
  JudgedGradient dq{}, dk{}, dv{}, dbias{}, dsinks{};
  RowSet queries;  // whose dq and dbias are judged
  RowSet keys;     // whose dk and dv are judged; of RowSet::keys_of
  unsigned bits = 0;

  JudgedGradient& of(AnswerKind);
  bool sums_over_keys() const { return dk.answer != nullptr || dv.answer != nullptr; }
  /// A broadcast bias adds up rows that a sample would leave out.
  bool bias_is_summed() const;
  /// True for an answer whose elements are sums over rows.
  bool is_summed(AnswerKind kind) const {
    return kind == AnswerKind::dbias ? bias_is_summed() : kind != AnswerKind::dq;
  }
  /// The rules of the answers that are judged row by row, for these rows; of all others.
  GradientRules rows_alone(const RowSet& rows) const;
  GradientRules sums_alone() const;
  /// True if rows count that are not among `queries`.
  bool needs_every_row() const {
    return sums_over_keys() || dsinks.answer != nullptr || bias_is_summed();
  }
};

/// What the backward pass starts from; in isolated mode the kernel's own out and lse, too. Throws
/// BadInput if the contract asks for them and one is absent.
Upstream upstream_of(const Case&, const Contract&);

/// Tallies of every gradient that the rules name. With a team every member judges whole KV heads,
/// whose keys add up all their rows, and the call is collective.
GradientTally judge_gradients(const GradientRules&, const WalkOptions&, const Team* = nullptr);

}  // namespace ringproof::oracle
