#include "oracle/judge/row_judge.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "oracle/judge/equal_scores.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double sign(double x) { return (x > 0) - (x < 0); }

bool undecided(const TensorTally& tally) {
  return tally.undecided > 0 || tally.functional_undecided > 0;
}

/// An element whose only right value is known without any arithmetic.
Element exact_element(const RowTruth& row, std::int64_t column, double answer, double demanded) {
  const bool right = std::isnan(demanded) ? std::isnan(answer) : answer == demanded;
  return {.row = {row.b, row.h, row.i},
          .column = column,
          .answer = answer,
          .exact = demanded,
          .accepted = {demanded, demanded},
          .error_over_bound = right ? 0 : kInfinity,
          .decision = right ? Decision::pass : Decision::fail};
}

}  // namespace

OutputRule output_rule(const Contract& contract, DType judged) {
  return {.dtype = judged,
          .round = contract.out.round,
          .overflow = contract.out.overflow,
          .flush_to_zero = contract.out.ftz};
}

OutputRule lse_rule(const Contract& contract, DType stored, double largest_magnitude) {
  const Format& format = format_of(stored);
  OutputRule rule{.dtype = stored, .round = RoundMode::rn};
  rule.rounds = format.unit() > contract.lse.u || !(largest_magnitude < format.largest);
  return rule;
}

Certified in_base_two(const Certified& x) {
  constexpr double kHigh = 0x1.71547652b82fep+0, kLow = 0x1.777d0ffda0d24p-56;  // log2(e)
  const double high = x.hi * kHigh;
  const double low = std::fma(x.hi, kHigh, -high) + (x.hi * kLow + x.lo * kHigh);
  const double sum = high + low;
  // Dropped: the constant beyond 2^-106, x.lo * kLow, four roundings of terms below 2^-51 |x|.
  const double radius = x.radius * 0x1.715477p+0 + std::abs(sum) * 0x1p-98;
  return {sum, low - (sum - high), radius};
}

LseTruth lse_in_base(const Contract& contract, const Certified& natural, double natural_bound) {
  if (contract.lse.base == LseBase::e) return {natural, natural_bound};
  constexpr double kAbove = 0x1.71547652b82ffp+0;  // > log2(e)
  return {in_base_two(natural), std::nextafter(natural_bound * kAbove, kInfinity)};
}

void RowJudge::judge(const HeadTruth& head, const RowSet& rows, const Chunk& chunk, Tally& tally) {
  certified_rows(
      *rules_.problem, rows, chunk, rules_.bits, head, truths_, [&](std::int64_t n, RowTruth& row) {
        const bool missing = rules_.missing_block_rows != nullptr
                                 ? rules_.missing_block_rows->contains({row.b, row.h, row.i})
                                 : n % rules_.missing_block_stride == 0;
        judge_row(head, row, missing, tally);
      });
}

void RowJudge::judge_row(const HeadTruth& head, RowTruth& row, bool with_missing_blocks,
                         Tally& tally) {
  Tally result;
  const auto decide = [&] {
    if (!is_certified(row)) return false;
    result = evaluate(head, row, with_missing_blocks);
    return !undecided(result.out) && !undecided(result.lse);
  };
  // Costs one look at the first key, unless all scores are zero; then most columns need it.
  const bool counts = row.not_applicable.empty() && is_certified(row);
  if (rules_.bits == 0 && rules_.out != nullptr && counts) {
    const double* values = head.values() + row.keys.first * head.values_stride();
    sharpen_equal_scores(row, values, head.values_stride());
  }
  unsigned used = 0;
  bool decided = decide();
  for (unsigned bits = kFirstBits; !decided && rules_.bits == 0 && bits <= kMostBits; bits *= 2) {
    interval_row(*rules_.problem, row.b, row.h, row.i, bits, row);
    used = bits;
    decided = decide();
  }
  if (!is_certified(row)) result = undecided_row(row);
  result.escalated = used > 0;
  result.bits = used;
  tally.merge(result);
}

Tally RowJudge::evaluate(const HeadTruth& head, const RowTruth& row, bool with_missing_blocks) {
  Tally tally;
  const auto not_applicable = [&](const std::string& reason) {
    for (TensorTally* tensor : {&tally.out, &tally.lse}) {
      tensor->not_applicable = 1;
      tensor->why_not_applicable = reason;
    }
    return tally;
  };
  if (!row.not_applicable.empty()) return not_applicable(row.not_applicable);
  if (row.empty()) {
    judge_empty(row, tally);
    return tally;
  }
  const double* values = head.values() + row.keys.first * head.values_stride();
  bound_row(*rules_.contract, *rules_.problem, row, values, head.values_stride(),
            with_missing_blocks && rules_.out != nullptr, bound_);
  if (!bound_.not_applicable.empty()) return not_applicable(bound_.not_applicable);
  if (rules_.out != nullptr) {
    judge_out(row, tally);
    judge_functional(row, tally);
    if (rules_.suspicion != nullptr) {
      add_suspicion(*rules_.suspicion, *rules_.problem, row, values, head.values_stride(), bound_,
                    *rules_.out, rules_.out_rule, tally.suspicion);
    }
  }
  if (rules_.lse != nullptr) judge_lse(row, tally);
  // What an answer that is not judged would have refused counts for nothing.
  if (rules_.out != nullptr) {
    tally.power.gain = bound_.power.gain;
    tally.power.missing_mass_out = bound_.power.missing_mass_out;
    tally.power.missing_block = bound_.power.missing_block;
  }
  if (rules_.lse != nullptr) tally.power.missing_mass_lse = bound_.power.missing_mass_lse;
  return tally;
}

Tally RowJudge::undecided_row(const RowTruth& row) const {
  const auto doubt = [&](const Tensor& answers, std::int64_t column, TensorTally& tally) {
    tally.add(Element{.row = {row.b, row.h, row.i},
                      .column = column,
                      .answer = answers.at(row.b, row.h, row.i, column),
                      .exact = kNaN,
                      .accepted = {-kInfinity, kInfinity},
                      .error_over_bound = kNaN,
                      .decision = Decision::unsure});
  };
  Tally tally;
  tally.out.rows = rules_.out != nullptr;
  tally.lse.rows = rules_.lse != nullptr;
  for (std::int64_t c = 0; rules_.out != nullptr && c < rules_.problem->value_dim; ++c) {
    doubt(*rules_.out, c, tally.out);
  }
  if (rules_.lse != nullptr) doubt(*rules_.lse, 0, tally.lse);
  return tally;
}

void RowJudge::judge_empty(const RowTruth& row, Tally& tally) const {
  const EmptyRow demanded = rules_.problem->spec.empty_row;
  if (demanded == EmptyRow::any) {
    tally.out.unconstrained = tally.lse.unconstrained = 1;
    return;
  }
  if (rules_.out != nullptr) {
    ++tally.out.rows;
    for (std::int64_t c = 0; c < rules_.problem->value_dim; ++c) {
      const double answer = rules_.out->at(row.b, row.h, row.i, c);
      tally.out.add(exact_element(row, c, answer, demanded == EmptyRow::nan ? kNaN : 0.0));
    }
  }
  if (rules_.lse != nullptr) {
    ++tally.lse.rows;
    tally.lse.add(exact_element(row, 0, rules_.lse->at(row.b, row.h, row.i, 0), -kInfinity));
  }
}

void RowJudge::judge_out(const RowTruth& row, Tally& tally) const {
  ++tally.out.rows;
  for (std::size_t c = 0; c < row.out.size(); ++c) {
    const double bound = bound_.out[c];
    if (std::isinf(bound)) {
      ++tally.out.unbounded;
      continue;
    }
    const auto column = static_cast<std::int64_t>(c);
    const double answer = rules_.out->at(row.b, row.h, row.i, column);
    tally.out.judge({row.b, row.h, row.i}, column, answer, row.out[c], bound, rules_.out_rule);
  }
  const RowPower& power = bound_.power;
  tally.out.zeros = {power.zeros_differ, power.zeros_pass, power.functional_refuses_zeros};
  tally.out.mean = {power.mean_differ, power.mean_pass, power.functional_refuses_mean};
  tally.out.twice = {power.twice_differ, power.twice_pass, power.functional_refuses_twice};
}

void RowJudge::judge_functional(const RowTruth& row, Tally& tally) const {
  const double largest = format_of(rules_.out_rule.dtype).largest;
  double value = 0, radius = 0, moved = 0, bound = bound_.functional;
  for (std::size_t c = 0; c < row.out.size(); ++c) {
    const Certified& exact = row.out[c];
    const double reach = std::abs(exact.hi) + bound_.out[c] + exact.radius;
    // A stored infinity or a clamped number is no rounding error of (26); the elements judge it
    // alone.
    if (!(reach < largest)) return;
    const double answer = rules_.out->at(row.b, row.h, row.i, static_cast<std::int64_t>(c));
    const double error = (answer - exact.hi) - exact.lo;
    value += sign(exact.hi) * error;
    moved += std::abs(answer - exact.hi) + std::abs(exact.lo);
    radius += exact.radius;
    if (rules_.out_rule.dtype != rules_.contract->out.dtype) {
      // (26) holds for the contract's own output type; this one rounds by itself.
      bound += rounding_step(rules_.out_rule, reach);
    }
  }
  // Three roundings a term and one a sum, each of at most 2^-53 of what has moved.
  radius += static_cast<double>(row.out.size() + 8) * 0x1p-53 * moved;
  Functional functional{.row = {row.b, row.h, row.i}, .value = std::abs(value), .bound = bound};
  if (std::isnan(bound) || bound < 0)
    throw std::logic_error("the functional bound is not a number");
  if (std::isinf(bound)) return;
  if (!(functional.value - radius <= bound)) {
    functional.decision = Decision::fail;
  } else if (!(functional.value + radius <= bound)) {
    functional.decision = Decision::unsure;
  }
  tally.out.add(functional);
}

void RowJudge::judge_lse(const RowTruth& row, Tally& tally) const {
  ++tally.lse.rows;
  const LseTruth truth = lse_in_base(*rules_.contract, row.lse, bound_.lse);
  if (std::isinf(truth.bound)) {
    ++tally.lse.unbounded;
    return;
  }
  const double reach = std::abs(truth.exact.hi) + truth.bound + truth.exact.radius;
  const OutputRule rule = lse_rule(*rules_.contract, rules_.lse->dtype, reach);
  const double answer = rules_.lse->at(row.b, row.h, row.i, 0);
  tally.lse.judge({row.b, row.h, row.i}, 0, answer, truth.exact, truth.bound, rule);
  // Zero and twice the LSE are equally far from it.
  if (truth.exact.hi != 0) {
    const bool passes = std::abs(truth.exact.hi) <= truth.bound;
    tally.lse.zeros = tally.lse.twice = {1, passes, false};
  }
}

}  // namespace ringproof::oracle
