// The gradients of one KV head: rows of dq and dbias when they come, keys of dk and dv when all
// rows are in. Sums over several heads are left to who owns them (gradient_judge.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/judge/gradient_judge.hpp"
#include "oracle/judge/gradient_walk.hpp"
#include "oracle/judge/summed_rows.hpp"

namespace ringproof::oracle {

/// What the bounds of one KV head rest on, whatever its groups are; built once, when its first
/// group starts, and freed with its last row.
struct HeadBounds {
  std::vector<std::uint8_t> wanted;  // [Nk] keys whose dk and dv are judged
  GradientShape shape;
  BackwardHead values;

  HeadBounds(const GradientRules&, const HeadView&);
};

/// Rows of one KV head as they come in; after finish(), what they say.
class HeadJudge final : public GradientGroup {
 public:
  HeadJudge(const GradientRules& rules, const HeadView& head,
            std::shared_ptr<const HeadBounds> bounds)
      : rules_(rules),
        problem_(*rules.problem),
        b_(head.b),
        kv_head_(head.kv_head),
        head_(std::move(bounds)) {
    row_sums.sinks_wanted = rules.dsinks.answer != nullptr;
    if (rules.bias_is_summed()) row_sums.bias_shape = rules.dbias.answer->shape;
    if (!rules_.sums_over_keys()) return;
    sums_.emplace(problem_, head_->wanted);
    bounds_.emplace(head_->shape);
    doubtful_.assign(head_->wanted.size(), 0);
  }

  GradientSums* sums() override { return sums_ ? &*sums_ : nullptr; }
  void add_row(const HeadView&, RowTruth&, RowGradients&) override;
  void merge(GradientGroup& other) override;
  void finish(const HeadView&) override;
  /// Of the KV head, counted through all batches.
  std::int64_t number() const { return b_ * problem_.kv_heads + kv_head_; }

  GradientTally tally;
  RowSums row_sums;

 private:
  /// Why a key's sums say nothing: a row that sees it is not applicable, or was never certified.
  enum class Doubt : std::uint8_t { none, not_applicable, failed };

  /// dbias has an element for every query and key: it is judged row by row.
  bool bias_judged_here() const {
    return rules_.dbias.answer != nullptr && !rules_.bias_is_summed();
  }
  void refuse_row(const RowTruth&, const std::string& reason);
  void doubt_keys(const RowTruth&, Doubt);
  void judge_row(RowTruth&, RowGradients&);
  GradientTally evaluate_row(const RowTruth&, const RowGradients&) const;
  void evaluate_bias(const RowTruth&, const RowGradients&, TensorTally&) const;
  std::vector<std::int64_t> judge_keys();
  bool judge_key(std::int64_t j, const Certified* dk, const Certified* dv, bool last);
  void judge_exactly(std::vector<std::int64_t> keys);

  const GradientRules& rules_;
  const Problem& problem_;
  std::int64_t b_, kv_head_;
  std::shared_ptr<const HeadBounds> head_;
  std::optional<GradientSums> sums_;
  std::optional<GradientBoundSums> bounds_;
  std::vector<std::uint8_t> doubtful_;  // [Nk] Doubt
  std::string why_not_applicable_;
  RowGradientBound bound_;
};

/// Counts a row or key to which the bounds do not apply.
void add_not_applicable(TensorTally&, const std::string& reason);

}  // namespace ringproof::oracle
