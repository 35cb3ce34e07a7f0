// The search over rules of the backward pass (gradient_search.hpp): one KV head after the other,
// that of the worst element first, with the mutants that are left.
#include "oracle/diagnose/gradient_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "oracle/diagnose/addition_search.hpp"
#include "oracle/judge/accept.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

JudgedGradientAnswer judged(const Subject& subject, const Report& report, AnswerKind kind) {
  const AnswerReport* answer = report.find(kind);
  if (answer == nullptr) return {};
  return {&subject.input.find(kind)->tensor, output_rule(subject.contract, answer->judged_type),
          answer->verdict == Verdict::fail};
}

/// Nothing lies outside an infinite box.
bool outside(double answer, double value, double bound, const OutputRule& rule) {
  return std::isfinite(bound) &&
         refutes(answer, {Expected::Kind::ball, {value, 0, 0}, bound}, rule);
}

/// Compares `rows` rows of one gradient; the values are those of consecutive rows.
void compare(const JudgedGradientAnswer& judged, std::int64_t b, std::int64_t head,
             std::int64_t rows, std::int64_t columns, const double* value, const double* bound,
             Candidate& candidate) {
  if (judged.answer == nullptr) return;
  for (std::int64_t n = 0; n < rows * columns && !candidate.refuted; ++n) {
    const double answer = judged.answer->at(b, head, n / columns, n % columns);
    candidate.refuted = outside(answer, value[n], bound[n], judged.rule);
    ++candidate.elements;
    candidate.open += !std::isfinite(bound[n]);
  }
}

/// The worst refused element of each gradient, where it lies in this KV head: what is refuted there
/// needs no look at the rest.
void compare_worst(const GradientPairs& pairs, const JudgedGradients& answers, const Report& report,
                   Candidate& candidate) {
  const auto one_row = [&](const JudgedGradientAnswer& judged, const Row& row, std::int64_t columns,
                           const std::vector<double>& value, const std::vector<double>& bound,
                           std::int64_t at) {
    for (std::int64_t c = 0; c < columns && !candidate.refuted; ++c) {
      const auto n = static_cast<std::size_t>(at * columns + c);
      candidate.refuted =
          outside(judged.answer->at(row.b, row.h, row.i, c), value[n], bound[n], judged.rule);
    }
  };
  for (const AnswerKind kind : {AnswerKind::dv, AnswerKind::dk, AnswerKind::dq}) {
    const AnswerReport* answer = report.find(kind);
    if (candidate.refuted || answer == nullptr || answer->verdict != Verdict::fail) continue;
    if (!answer->tally.worst_element) continue;
    const Row row = answer->tally.worst_element->row;
    if (row.b != pairs.b) continue;
    if (kind != AnswerKind::dq) {
      if (row.h != pairs.kv_head) continue;
      const WrongGradients wrong =
          wrong_gradients(pairs, candidate.mutant, window_of_key(candidate.mutant, row.i));
      if (kind == AnswerKind::dk) {
        one_row(answers.dk, row, pairs.head_dim, wrong.dk, wrong.bound_k, row.i);
      } else {
        one_row(answers.dv, row, pairs.value_dim, wrong.dv, wrong.bound_v, row.i);
      }
      continue;
    }
    for (std::size_t n = 0; n < pairs.heads.size(); ++n) {
      if (pairs.heads[n].h != row.h) continue;
      const WrongGradients wrong =
          wrong_gradients(pairs, candidate.mutant, {.row = std::pair(row.h, row.i)});
      one_row(answers.dq, row, pairs.head_dim, wrong.dq, wrong.bound_q,
              static_cast<std::int64_t>(n) * pairs.queries + row.i);
    }
  }
}

/// A factor by least squares, and how far that of the kernel may be from it, relative to it.
struct FittedFactor {
  double factor, spread;
  /// No right gradients have this factor: it says something.
  bool excludes_one() const { return std::abs(factor - 1) > spread * std::abs(factor); }
};

/// The sums of a regression of answers y on right values x with bounds b. If y is c x for a
/// conforming x^, |x^ - x| <= b, and a rounding r, then sum x y / sum x^2 is c up to
/// (|c| sum |x| b + sum |x| r) / sum x^2.
struct Regression {
  double xx = 0, xy = 0, of_bounds = 0, of_roundings = 0, sizes = 0, count = 0;

  void add(double x, double bound, double y, const OutputRule& rule) {
    const double largest = format_of(rule.dtype).largest;
    if (!std::isfinite(y) || !std::isfinite(bound) || std::abs(y) >= largest) return;
    xx += x * x;
    xy += x * y;
    of_bounds += std::abs(x) * bound;
    of_roundings += std::abs(x) * rounding_step(rule, 1.25 * std::abs(y));
    sizes += std::abs(x * y);
    ++count;
  }
  std::optional<FittedFactor> fit(double product_hat) const {
    const double factor = xy / xx, loose = of_bounds / xx;
    if (!(xx > 0) || !std::isfinite(factor) || factor == 0 || !(loose < 0.5)) return {};
    const double evaluated = 0x1p-52 * (count + 8) * sizes / xx;
    const double off = (std::abs(factor) * loose + of_roundings / xx + evaluated) / (1 - loose);
    return FittedFactor{factor, off / std::abs(factor) + 2 * product_hat};
  }
};

/// The factor of each refused gradient over this KV head; none for a gradient of which too few
/// elements are refused for a fitted factor to say anything.
std::optional<GradientMutant> guessed_gain(const GradientPairs& pairs,
                                           const JudgedGradients& answers, const Report& report) {
  const WrongGradients right = wrong_gradients(pairs, GradientMutant{});
  GradientMutant gain{.id = "GAIN", .words = "", .also = "", .rule = {}};
  const auto regress = [&](AnswerKind kind, const JudgedGradientAnswer& judged, std::int64_t rows,
                           std::int64_t columns, const std::vector<double>& value,
                           const std::vector<double>& bound, const auto& head_of, bool& wrong,
                           double& factor, double& spread) {
    if (!judged.refused || report.find(kind)->tally.failed < kFewestForFactor) return;
    Regression regression;
    for (std::size_t n = 0; n < value.size(); ++n) {
      const auto place = static_cast<std::int64_t>(n) / columns;
      const double answer = judged.answer->at(pairs.b, head_of(place / rows), place % rows,
                                              static_cast<std::int64_t>(n) % columns);
      regression.add(value[n], bound[n], answer, judged.rule);
    }
    const std::optional<FittedFactor> fitted = regression.fit(pairs.product_hat);
    if (!fitted || !fitted->excludes_one()) return;
    wrong = true;
    factor = fitted->factor;
    spread = fitted->spread;
    char text[48];
    std::snprintf(text, sizeof text, "%s times %.6g", std::string(name(kind)).c_str(), factor);
    gain.words += (gain.words.empty() ? "" : ", ") + std::string(text);
  };
  const auto query_head = [&](std::int64_t n) {
    return pairs.heads[static_cast<std::size_t>(n)].h;
  };
  const auto key_head = [&](std::int64_t) { return pairs.kv_head; };
  GradientRule& rule = gain.rule;
  regress(AnswerKind::dq, answers.dq, pairs.queries, pairs.head_dim, right.dq, right.bound_q,
          query_head, gain.dq, rule.factor_q, rule.spread_q);
  regress(AnswerKind::dk, answers.dk, pairs.keys, pairs.head_dim, right.dk, right.bound_k, key_head,
          gain.dk, rule.factor_k, rule.spread_k);
  regress(AnswerKind::dv, answers.dv, pairs.keys, pairs.value_dim, right.dv, right.bound_v,
          key_head, gain.dv, rule.factor_v, rule.spread_v);
  if (!gain.dq && !gain.dk && !gain.dv) return std::nullopt;
  return gain;
}

void compare(const GradientPairs& pairs, const JudgedGradients& answers, Candidate& candidate) {
  const WrongGradients wrong = wrong_gradients(pairs, candidate.mutant);
  const std::int64_t of_head = pairs.queries * pairs.head_dim;
  for (std::size_t n = 0; candidate.mutant.dq && n < pairs.heads.size(); ++n) {
    const std::int64_t first = static_cast<std::int64_t>(n) * of_head;
    compare(answers.dq, pairs.b, pairs.heads[n].h, pairs.queries, pairs.head_dim,
            wrong.dq.data() + first, wrong.bound_q.data() + first, candidate);
  }
  if (candidate.mutant.dk) {
    compare(answers.dk, pairs.b, pairs.kv_head, pairs.keys, pairs.head_dim, wrong.dk.data(),
            wrong.bound_k.data(), candidate);
  }
  if (candidate.mutant.dv) {
    compare(answers.dv, pairs.b, pairs.kv_head, pairs.keys, pairs.value_dim, wrong.dv.data(),
            wrong.bound_v.data(), candidate);
  }
}

/// True if the class changes every refused gradient; some gradient is refused.
bool fits(const GradientMutant& mutant, const JudgedGradients& answers) {
  const auto covers = [](bool changed, const JudgedGradientAnswer& one) {
    return changed || !one.refused;
  };
  return covers(mutant.dq, answers.dq) && covers(mutant.dk, answers.dk) &&
         covers(mutant.dv, answers.dv) && covers(mutant.dbias, answers.dbias) &&
         covers(mutant.dsinks, answers.dsinks);
}

/// (b, KV head) in order, that of the worst refused element first.
std::vector<std::pair<std::int64_t, std::int64_t>> heads_in_order(const Problem& p,
                                                                  const Report& report) {
  std::vector<std::pair<std::int64_t, std::int64_t>> heads;
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.kv_heads; ++h) heads.emplace_back(b, h);
  }
  for (const AnswerKind kind : {AnswerKind::dv, AnswerKind::dk, AnswerKind::dq}) {
    const AnswerReport* answer = report.find(kind);
    if (answer == nullptr || answer->verdict != Verdict::fail) continue;
    if (!answer->tally.worst_element) continue;
    const Row& row = answer->tally.worst_element->row;
    const std::pair worst{row.b, kind == AnswerKind::dq ? p.kv_head(row.h) : row.h};
    const auto place = std::find(heads.begin(), heads.end(), worst);
    if (place != heads.end()) std::rotate(heads.begin(), place, place + 1);
  }
  return heads;
}

}  // namespace

void add_gradient_classes(const Subject& subject, const Report& report, Diagnosis& diagnosis) {
  const JudgedGradients answers{
      judged(subject, report, AnswerKind::dq), judged(subject, report, AnswerKind::dk),
      judged(subject, report, AnswerKind::dv), judged(subject, report, AnswerKind::dbias),
      judged(subject, report, AnswerKind::dsinks)};
  if (!answers.refused()) return;
  const AdditionSearch additions(subject, answers, report);
  std::vector<Candidate> candidates;
  for (GradientMutant& mutant : gradient_classes(subject)) {
    if (!fits(mutant, answers)) continue;
    additions.start_worst(candidates.emplace_back(Candidate{std::move(mutant)}));
  }
  bool gain_guessed = false;  // from the KV head of the worst element
  for (const auto& [b, kv_head] : heads_in_order(subject.problem(), report)) {
    const bool left = std::any_of(candidates.begin(), candidates.end(),
                                  [](const Candidate& one) { return !one.refuted; });
    if (!left) break;
    const GradientPairs pairs = gradient_pairs(subject.input, subject.contract, b, kv_head);
    if (!pairs.not_evaluated.empty()) {
      diagnosis.without_theory += static_cast<std::int64_t>(candidates.size());
      return;
    }
    if (!gain_guessed) {
      gain_guessed = true;
      auto gain = guessed_gain(pairs, answers, report);
      if (gain && fits(*gain, answers)) candidates.push_back({std::move(*gain)});
    }
    for (Candidate& candidate : candidates) {
      if (!candidate.refuted) compare_worst(pairs, answers, report, candidate);
      if (!candidate.refuted) compare(pairs, answers, candidate);
      if (!candidate.refuted) additions.add(pairs, candidate);
    }
  }
  for (Candidate& candidate : candidates) additions.compare(candidate);
  additions.compare_whole(candidates);
  for (const Candidate& candidate : candidates) {
    if (candidate.refuted) {
      ++diagnosis.refuted;
    } else {
      diagnosis.explanations.push_back({candidate.mutant.id, candidate.mutant.also,
                                        candidate.mutant.words, "", candidate.elements,
                                        candidate.open, candidate.mutant.estimated});
    }
  }
}

}  // namespace ringproof::oracle
