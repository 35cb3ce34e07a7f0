#include "oracle/judge/gradient_judge.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "oracle/case/error.hpp"
#include "oracle/contract/gradient_shape.hpp"
#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/gradient_element.hpp"
#include "oracle/judge/head_judge.hpp"
#include "oracle/judge/tally_wire.hpp"

namespace ringproof::oracle {

namespace {

/// The bounds of every KV head that is being visited.
class HeadBoundsPool {
 public:
  explicit HeadBoundsPool(const GradientRules& rules)
      : rules_(rules),
        heads_(static_cast<std::size_t>(rules.problem->batches * rules.problem->kv_heads)) {}

  std::shared_ptr<const HeadBounds> of(const HeadView& head) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const HeadBounds>& known =
        heads_[static_cast<std::size_t>(head.b * rules_.problem->kv_heads + head.kv_head)];
    std::shared_ptr<const HeadBounds> bounds = known.lock();
    if (!bounds) known = bounds = std::make_shared<const HeadBounds>(rules_, head);
    return bounds;
  }

 private:
  const GradientRules& rules_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<const HeadBounds>> heads_;
};

/// Judges the rows of a tensor whose elements are sums over rows of several heads or batches.
/// `largest`: Omega of a sum and its stores, H1.
void judge_sums(const SummedRows& sums, const JudgedGradient& judged, double largest,
                TensorTally& tally) {
  const Tensor& answer = *judged.answer;
  const auto& shape = answer.shape;
  for (std::int64_t n = 0; n < shape[0] * shape[1] * shape[2]; ++n) {
    const SummedRow* sum = sums.find(n);
    if (sum != nullptr && !sum->not_applicable.empty()) {
      add_not_applicable(tally, sum->not_applicable);
      continue;
    }
    ++tally.rows;
    const Row place{n / (shape[1] * shape[2]), n / shape[2] % shape[1], n % shape[2]};
    for (std::int64_t c = 0; c < shape[3]; ++c) {
      const double value = answer.at(place.b, place.h, place.i, c);
      if (sum != nullptr && sum->failed) {
        add_unsure_element(place, c, value, tally);
        continue;
      }
      const SummedElement element =
          sum == nullptr ? SummedElement{} : sum->elements[static_cast<std::size_t>(c)];
      const double bound = element.magnitude <= largest ? element.bound : HUGE_VAL;
      add_gradient_element(place, c, value, element.value.value(), bound, judged.rule, tally);
    }
  }
}

}  // namespace

Upstream upstream_of(const Case& input, const Contract& contract) {
  if (contract.backward.mode != BackwardMode::isolated) return {input.dout, input.dlse, {}};
  const Answer* out = input.find(AnswerKind::out);
  const Answer* lse = input.find(AnswerKind::lse);
  if (out == nullptr || lse == nullptr) {
    throw BadInput(
        input.name + ": the contract " + contract.name +
        " judges gradients from the kernel's own out and lse, and one of them is absent");
  }
  return {input.dout, input.dlse, {out->tensor, lse->tensor, contract.lse.base}};
}

JudgedGradient& GradientRules::of(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::dq:
      return dq;
    case AnswerKind::dk:
      return dk;
    case AnswerKind::dv:
      return dv;
    case AnswerKind::dbias:
      return dbias;
    case AnswerKind::dsinks:
      return dsinks;
    default:
      throw std::logic_error("no gradient");
  }
}

GradientRules GradientRules::rows_alone(const RowSet& rows) const {
  GradientRules rules = *this;
  rules.queries = rows;
  rules.dk = rules.dv = rules.dsinks = {};
  if (bias_is_summed()) rules.dbias = {};
  return rules;
}

GradientRules GradientRules::sums_alone() const {
  GradientRules rules = *this;
  rules.dq = {};
  if (!bias_is_summed()) rules.dbias = {};
  return rules;
}

bool GradientRules::bias_is_summed() const {
  return dbias.answer != nullptr && sums_over_rows(*problem, dbias.answer->shape);
}

namespace {

void judge_sums(const GradientRules& rules, const RowSums& sums, GradientTally& tally) {
  const double largest = largest_gradient_sum(*rules.contract);
  if (rules.bias_is_summed()) {
    judge_sums(sums.bias, rules.dbias, largest, tally[AnswerKind::dbias]);
  }
  if (rules.dsinks.answer != nullptr) {
    judge_sums(sums.sinks, rules.dsinks, largest, tally[AnswerKind::dsinks]);
  }
}

/// The sums that are undecided once more, all their rows from intervals.
void judge_sums_exactly(const GradientRules& rules, const WalkOptions& options, const Team* team,
                        GradientTally& tally) {
  const auto undecided = [&](AnswerKind kind) {
    return rules.is_summed(kind) && tally[kind].undecided > 0;
  };
  GradientRules again = rules.sums_alone();
  again.dk = again.dv = {};
  if (!undecided(AnswerKind::dbias)) again.dbias = {};
  if (!undecided(AnswerKind::dsinks)) again.dsinks = {};
  if (!again.needs_every_row()) return;
  again.bits = kFirstBits;
  const GradientTally exact = judge_gradients(again, options, team);
  for (const AnswerKind kind : {AnswerKind::dbias, AnswerKind::dsinks}) {
    if (again.of(kind).answer != nullptr) tally[kind] = exact[kind];
  }
  tally.escalated_rows += RowSet(*rules.problem).size();
  tally.bits = std::max(tally.bits, again.bits);
}

/// What the rows of one KV head say.
struct HeadResult {
  GradientTally tally{};
  RowSums row_sums{};
};

template <class Wire>
void transfer(Wire& wire, HeadResult& result) {
  auto& [tally, row_sums] = result;
  wire(tally, row_sums);
}

/// The rows of the KV heads that are this member's.
RowSet rows_of_member(const Problem& problem, const RowSet& rows, const Team* team) {
  if (team == nullptr) return rows;
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 0; n < rows.size(); ++n) {
    const Row row = rows.row(n);
    const std::int64_t head = row.b * problem.kv_heads + problem.kv_head(row.h);
    if (!is_mine(team, head, problem.batches * problem.kv_heads)) continue;
    numbers.push_back((row.b * problem.heads + row.h) * problem.queries + row.i);
  }
  return RowSet(problem, std::move(numbers));
}

/// One result a KV head; those of other members are empty.
std::vector<HeadResult> judge_heads(const GradientRules& rules, const RowSet& rows,
                                    const WalkOptions& options) {
  const Problem& problem = *rules.problem;
  HeadBoundsPool bounds(rules);
  const auto groups =
      walk_gradients(problem, rules.upstream, rows, rules.bits, options, [&](const HeadView& head) {
        return std::make_unique<HeadJudge>(rules, head, bounds.of(head));
      });
  std::vector<HeadResult> heads(static_cast<std::size_t>(problem.batches * problem.kv_heads));
  for (const auto& group : groups) {
    auto& judge = static_cast<HeadJudge&>(*group);
    heads[static_cast<std::size_t>(judge.number())] = {std::move(judge.tally),
                                                       std::move(judge.row_sums)};
  }
  return heads;
}

}  // namespace

GradientTally judge_gradients(const GradientRules& rules, const WalkOptions& options,
                              const Team* team) {
  const bool nothing = rules.dq.answer == nullptr && rules.dbias.answer == nullptr;
  if (nothing && !rules.needs_every_row()) return {};
  const RowSet every_row(*rules.problem);
  const RowSet& rows = rules.needs_every_row() ? every_row : rules.queries;
  std::vector<HeadResult> heads =
      judge_heads(rules, rows_of_member(*rules.problem, rows, team), options);
  complete(team, heads);
  GradientTally tally;
  RowSums sums;
  for (const HeadResult& head : heads) {
    tally.merge(head.tally);
    sums.merge(head.row_sums);
  }
  judge_sums(rules, sums, tally);
  // Without queries no head was visited: all keys are unseen, and their gradients exactly 0.
  if (rules.problem->queries == 0) {
    if (rules.dk.answer != nullptr) judge_sums({}, rules.dk, 0, tally[AnswerKind::dk]);
    if (rules.dv.answer != nullptr) judge_sums({}, rules.dv, 0, tally[AnswerKind::dv]);
  }
  if (rules.bits == 0) judge_sums_exactly(rules, options, team, tally);
  return tally;
}

}  // namespace ringproof::oracle
