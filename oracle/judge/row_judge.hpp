// The judgement of one query row: truth, bound, acceptance, and more digits until it is decided.
// Not here: which rows are visited, and how tallies become a verdict (check.hpp).
#pragma once

#include <span>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/bound.hpp"
#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/suspicion.hpp"
#include "oracle/judge/tally.hpp"

namespace ringproof::oracle {

/// What stays the same for all rows of a check.
struct JudgeRules {
  const Problem* problem = nullptr;
  const Contract* contract = nullptr;
  const Tensor* out = nullptr;  // [B, H, Nq, Dv]; nullptr: not judged
  const Tensor* lse = nullptr;  // [B, H, Nq, 1]; nullptr: not judged
  OutputRule out_rule;
  unsigned bits = 0;          // > 0: every row from interval arithmetic of that many digits
  unsigned most_bits = 2048;  // where escalation ends
  std::int64_t missing_block_stride = 1;       // every so many rows (43) is computed as well
  const RowSet* missing_block_rows = nullptr;  // on these rows instead
  const SuspicionRules* suspicion = nullptr;   // the probabilistic level; nullptr: not asked for
};

/// The rule of an out that is judged in the given type.
OutputRule output_rule(const Contract&, DType judged);
/// The LSE's rule: direct comparison where the bound contains the storage, else rounding to
/// `stored`.
OutputRule lse_rule(const Contract&, DType stored, double largest_magnitude);
/// x * log2(e): the LSE in the base a contract may declare.
Certified in_base_two(const Certified& x);
/// The LSE and its bound in the contract's base.
struct LseTruth {
  Certified exact;
  double bound;
};
LseTruth lse_in_base(const Contract&, const Certified& natural, double natural_bound);

/// Judges rows of one head; one object a thread, its memory is reused.
class RowJudge {
 public:
  explicit RowJudge(const JudgeRules& rules) : rules_(rules) {}
  /// Rows [chunk.first, chunk.last) of the set.
  void judge(const HeadTruth&, const RowSet&, const Chunk&, Tally&);
  /// One row whose truth is at hand and certified; nothing escalates.
  Tally evaluate(const HeadTruth&, const RowTruth&, bool with_missing_blocks);
  /// Of the row evaluated last.
  const RowBound& bound() const { return bound_; }

 private:
  void judge_row(const HeadTruth&, RowTruth&, bool with_missing_blocks, Tally&);
  Tally undecided_row(const RowTruth&) const;
  void judge_empty(const RowTruth&, Tally&) const;
  void judge_out(const RowTruth&, Tally&) const;
  void judge_functional(const RowTruth&, Tally&) const;
  void judge_lse(const RowTruth&, Tally&) const;

  const JudgeRules& rules_;
  RowBlock truths_;
  RowBound bound_;
};

}  // namespace ringproof::oracle
