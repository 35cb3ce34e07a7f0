#include "oracle/diagnose/addition_search.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

using Answer = JudgedGradientAnswer;

BiasShape shape(const Answer& one) { return one.answer->shape; }

/// Number of the worst element; none if the answer is not judged.
std::optional<std::int64_t> worst(const Report& report, AnswerKind kind, const Answer& one) {
  if (one.answer == nullptr) return {};
  const auto& element = report.find(kind)->tally.worst_element;
  if (!element) return {};
  const Row& row = element->row;
  return AdditionSums::number(shape(one), {row.b, row.h, row.i, element->column});
}

void compare_sums(const Answer& judged, const std::optional<AdditionSums>& sums,
                  Candidate& candidate) {
  if (!sums) return;
  const BiasShape of = shape(judged);
  const bool whole = sums->last() - sums->first() == AdditionSums::elements(of);
  for (std::int64_t n = sums->first(); n < sums->last() && !candidate.refuted; ++n) {
    const std::int64_t row = n / of[3];
    const double answer =
        judged.answer->at(row / of[2] / of[1], row / of[2] % of[1], row % of[2], n % of[3]);
    const double bound = sums->bound(n);
    const Expected expected{Expected::Kind::ball, {sums->value(n), 0, 0}, bound};
    candidate.refuted = std::isfinite(bound) && refutes(answer, expected, judged.rule);
    candidate.elements += whole;
    candidate.open += whole && !std::isfinite(bound);
  }
}

}  // namespace

AdditionSearch::AdditionSearch(const Subject& subject, const JudgedGradients& answers,
                               const Report& report)
    : subject_(subject),
      answers_(answers),
      worst_bias_(worst(report, AnswerKind::dbias, answers.dbias)),
      worst_sink_(worst(report, AnswerKind::dsinks, answers.dsinks)) {}

BiasBudget AdditionSearch::budget(const Candidate& one) const {
  return {subject_.contract, subject_.problem(), one.mutant.rule};
}

void AdditionSearch::start_worst(Candidate& one) const {
  if (one.mutant.dbias && worst_bias_) {
    one.dbias.emplace(shape(answers_.dbias), budget(one), worst_bias_);
  }
  if (one.mutant.dsinks && worst_sink_) {
    one.dsinks.emplace(shape(answers_.dsinks), budget(one), worst_sink_);
  }
}

void AdditionSearch::start_whole(Candidate& one) const {
  if (one.mutant.dbias && answers_.dbias.answer != nullptr) {
    one.dbias.emplace(shape(answers_.dbias), budget(one));
  }
  if (one.mutant.dsinks && answers_.dsinks.answer != nullptr) {
    one.dsinks.emplace(shape(answers_.dsinks), budget(one));
  }
}

void AdditionSearch::add(const GradientPairs& pairs, Candidate& one) {
  if (one.dbias) one.dbias->add_bias(pairs, one.mutant.rule);
  if (one.dsinks) one.dsinks->add_sinks(pairs, one.mutant.rule);
}

void AdditionSearch::compare(Candidate& one) const {
  compare_sums(answers_.dbias, one.dbias, one);
  compare_sums(answers_.dsinks, one.dsinks, one);
  one.dbias.reset();
  one.dsinks.reset();
}

void AdditionSearch::compare_whole(std::vector<Candidate>& candidates) const {
  std::vector<Candidate*> left;
  for (Candidate& one : candidates) {
    const bool bias = one.mutant.dbias && answers_.dbias.answer != nullptr;
    const bool sinks = one.mutant.dsinks && answers_.dsinks.answer != nullptr;
    if (!one.refuted && (bias || sinks)) left.push_back(&one);
  }
  const std::int64_t elements =
      answers_.dbias.answer != nullptr ? AdditionSums::elements(shape(answers_.dbias)) : 1;
  const auto together = static_cast<std::size_t>(std::max<std::int64_t>(1, kMostPairs / elements));
  const Problem& p = subject_.problem();
  for (std::size_t first = 0; first < left.size(); first += together) {
    const std::size_t last = std::min(first + together, left.size());
    for (std::size_t n = first; n < last; ++n) start_whole(*left[n]);
    for (std::int64_t head = 0; head < p.batches * p.kv_heads; ++head) {
      const GradientPairs pairs =
          gradient_pairs(subject_.input, subject_.contract, head / p.kv_heads, head % p.kv_heads);
      for (std::size_t n = first; n < last; ++n) add(pairs, *left[n]);
    }
    for (std::size_t n = first; n < last; ++n) compare(*left[n]);
  }
}

}  // namespace ringproof::oracle
