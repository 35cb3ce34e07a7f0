#include "oracle/judge/head_judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/gradient_element.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::uint8_t> wanted_keys(const GradientRules& rules, const HeadView& head) {
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(rules.problem->keys));
  for (std::int64_t j = 0; rules.sums_over_keys() && j < rules.problem->keys; ++j) {
    wanted[static_cast<std::size_t>(j)] = rules.keys.contains({head.b, head.kv_head, j});
  }
  return wanted;
}

}  // namespace

void add_not_applicable(TensorTally& tally, const std::string& reason) {
  if (tally.not_applicable == 0) tally.why_not_applicable = reason;
  ++tally.not_applicable;
}

HeadBounds::HeadBounds(const GradientRules& rules, const HeadView& head)
    : wanted(wanted_keys(rules, head)),
      shape(*rules.contract, *rules.problem, head.b, head.kv_head, wanted),
      values(*rules.problem, head.backward.keys(), head.backward.keys_stride(),
             head.forward.values(), head.forward.values_stride()) {}

void HeadJudge::add_row(const HeadView&, RowTruth& row, RowGradients& gradients) {
  if (!gradients.not_applicable.empty()) return refuse_row(row, gradients.not_applicable);
  if (gradients.failed) {
    doubt_keys(row, Doubt::failed);
  } else {
    bound_row_backward(*rules_.contract, problem_, rules_.upstream.given, head_->values, row,
                       gradients, bound_, bounds_ ? &*bounds_ : nullptr);
    if (!bound_.not_applicable.empty()) {
      doubt_keys(row, Doubt::not_applicable);
      return refuse_row(row, bound_.not_applicable);
    }
  }
  if (rules_.queries.contains({row.b, row.h, row.i})) judge_row(row, gradients);
  row_sums.add(row, gradients, bound_.dbias.data(), bound_.dsink);
}

void HeadJudge::refuse_row(const RowTruth& row, const std::string& reason) {
  if (why_not_applicable_.empty()) why_not_applicable_ = reason;
  const bool judged = rules_.queries.contains({row.b, row.h, row.i});
  if (judged && rules_.dq.answer != nullptr) {
    add_not_applicable(tally[AnswerKind::dq], reason);
  }
  if (judged && bias_judged_here()) add_not_applicable(tally[AnswerKind::dbias], reason);
  row_sums.refuse(row, reason);
}

void HeadJudge::doubt_keys(const RowTruth& row, Doubt doubt) {
  if (doubtful_.empty()) return;
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    if (row.score[n] == -kInfinity) continue;
    std::uint8_t& mark = doubtful_[static_cast<std::size_t>(row.keys.first) + n];
    mark = std::max(mark, static_cast<std::uint8_t>(doubt));
  }
}

void HeadJudge::judge_row(RowTruth& row, RowGradients& gradients) {
  if (rules_.dq.answer == nullptr && !bias_judged_here()) return;
  const auto undecided = [](const GradientTally& result) {
    return result[AnswerKind::dq].undecided + result[AnswerKind::dbias].undecided > 0;
  };
  GradientTally result = evaluate_row(row, gradients);
  for (unsigned bits = kFirstBits; undecided(result) && rules_.bits == 0 && bits <= kMostBits;
       bits *= 2) {
    interval_row_gradients(problem_, rules_.upstream, row.b, row.h, row.i, bits, row, gradients,
                           nullptr);
    result = evaluate_row(row, gradients);
    result.escalated_rows = 1;
    result.bits = bits;
  }
  tally.merge(result);
}

GradientTally HeadJudge::evaluate_row(const RowTruth& row, const RowGradients& gradients) const {
  GradientTally result;
  const Row place{row.b, row.h, row.i};
  if (rules_.dq.answer != nullptr) {
    TensorTally& dq = result[AnswerKind::dq];
    ++dq.rows;
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const double answer = rules_.dq.answer->at(row.b, row.h, row.i, d);
      if (gradients.failed) {
        add_unsure_element(place, d, answer, dq);
      } else {
        add_gradient_element(place, d, answer, gradients.dq[at], bound_.dq[at], rules_.dq.rule, dq);
      }
    }
  }
  if (bias_judged_here()) {
    evaluate_bias(row, gradients, result[AnswerKind::dbias]);
  }
  return result;
}

void HeadJudge::evaluate_bias(const RowTruth& row, const RowGradients& gradients,
                              TensorTally& dbias) const {
  const Row place{row.b, row.h, row.i};
  ++dbias.rows;
  for (std::int64_t j = 0; j < problem_.keys; ++j) {
    const double answer = rules_.dbias.answer->at(row.b, row.h, row.i, j);
    const bool inside = j >= row.keys.first && j < row.keys.last;
    const auto n = static_cast<std::size_t>(j - row.keys.first);
    if (!inside || row.score[n] == -kInfinity) {  // nothing depends on what nobody sees
      add_gradient_element(place, j, answer, {}, 0, rules_.dbias.rule, dbias);
    } else if (gradients.failed) {
      add_unsure_element(place, j, answer, dbias);
    } else {
      add_gradient_element(place, j, answer, gradients.dbias[n], bound_.dbias[n], rules_.dbias.rule,
                           dbias);
    }
  }
}

void HeadJudge::merge(GradientGroup& other) {
  auto& later = static_cast<HeadJudge&>(other);
  tally.merge(later.tally);
  row_sums.merge(later.row_sums);
  if (why_not_applicable_.empty()) why_not_applicable_ = later.why_not_applicable_;
  for (std::size_t j = 0; j < doubtful_.size(); ++j) {
    doubtful_[j] = std::max(doubtful_[j], later.doubtful_[j]);
  }
  if (!sums_) return;
  sums_->merge(*later.sums_);
  bounds_->merge(*later.bounds_);
}

void HeadJudge::finish(const HeadView&) {
  if (sums_) {
    bounds_->finish();
    judge_exactly(judge_keys());
  }
  sums_.reset();
  bounds_.reset();
  head_.reset();
}

/// Judges every wanted key from the sums; returns those that these leave undecided.
std::vector<std::int64_t> HeadJudge::judge_keys() {
  std::vector<std::int64_t> undecided;
  std::vector<Certified> dk(static_cast<std::size_t>(problem_.head_dim));
  std::vector<Certified> dv(static_cast<std::size_t>(problem_.value_dim));
  for (std::int64_t j = 0; j < problem_.keys; ++j) {
    if (!sums_->wanted(j)) continue;
    for (std::size_t d = 0; d < dk.size(); ++d) dk[d] = sums_->dk(j, static_cast<std::int64_t>(d));
    for (std::size_t c = 0; c < dv.size(); ++c) dv[c] = sums_->dv(j, static_cast<std::int64_t>(c));
    const bool last = rules_.bits > 0;
    if (!judge_key(j, dk.data(), dv.data(), last)) undecided.push_back(j);
  }
  return undecided;
}

/// Adds the key to the tally if that decides it, or in any case if it is the last try.
bool HeadJudge::judge_key(std::int64_t j, const Certified* dk, const Certified* dv, bool last) {
  const auto doubt = static_cast<Doubt>(doubtful_[static_cast<std::size_t>(j)]);
  const bool refused = doubt == Doubt::not_applicable || sums_->not_applicable(j);
  GradientTally result;
  const auto judge = [&](AnswerKind kind, const JudgedGradient& judged, std::int64_t columns,
                         const Certified* exact, const auto& bound) {
    if (judged.answer == nullptr) return;
    TensorTally& tensor = result[kind];
    if (refused) return add_not_applicable(tensor, why_not_applicable_);
    ++tensor.rows;
    const Row place{b_, kv_head_, j};
    for (std::int64_t c = 0; c < columns; ++c) {
      const double answer = judged.answer->at(b_, kv_head_, j, c);
      if (doubt == Doubt::failed) {
        add_unsure_element(place, c, answer, tensor);
      } else {
        add_gradient_element(place, c, answer, exact[c], bound(c), judged.rule, tensor);
      }
    }
  };
  judge(AnswerKind::dk, rules_.dk, problem_.head_dim, dk,
        [&](std::int64_t d) { return bounds_->dk(j, d); });
  judge(AnswerKind::dv, rules_.dv, problem_.value_dim, dv,
        [&](std::int64_t c) { return bounds_->dv(j, c); });
  const bool decided = result[AnswerKind::dk].undecided + result[AnswerKind::dv].undecided == 0;
  if (decided || last || doubt == Doubt::failed) {
    tally.merge(result);
    return true;
  }
  return false;
}

/// Judges keys from interval arithmetic of more and more digits.
void HeadJudge::judge_exactly(std::vector<std::int64_t> keys) {
  tally.escalated_keys += static_cast<std::int64_t>(keys.size());
  for (unsigned bits = kFirstBits; !keys.empty(); bits *= 2) {
    const std::vector<KeyGradients> exact =
        interval_key_gradients(problem_, rules_.upstream, b_, kv_head_, keys, bits);
    std::vector<std::int64_t> undecided;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const bool last = 2 * bits > kMostBits;
      if (!judge_key(keys[n], exact[n].dk.data(), exact[n].dv.data(), last)) {
        undecided.push_back(keys[n]);
      }
    }
    tally.bits = std::max(tally.bits, bits);
    keys = std::move(undecided);
  }
}

}  // namespace ringproof::oracle
