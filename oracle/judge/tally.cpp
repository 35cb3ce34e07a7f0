#include "oracle/judge/tally.hpp"

#include <algorithm>

namespace ringproof::oracle {

namespace {

int severity(Decision decision) {
  return decision == Decision::fail ? 2 : decision == Decision::unsure ? 1 : 0;
}

/// Failures come before doubts before passes, then the larger error; the earlier one wins a tie.
template <class T>
void keep_worse(std::optional<T>& kept, const T& other, double kept_error, double other_error) {
  const bool worse =
      !kept || severity(other.decision) > severity(kept->decision) ||
      (severity(other.decision) == severity(kept->decision) && other_error > kept_error);
  if (worse) kept = other;
}

void keep_worse(std::optional<Element>& kept, const Element& other) {
  keep_worse(kept, other, kept ? kept->error_over_bound : 0, other.error_over_bound);
}

void keep_worse(std::optional<Functional>& kept, const Functional& other) {
  keep_worse(kept, other, kept ? kept->error_over_bound() : 0, other.error_over_bound());
}

void merge(Vacuity& into, const Vacuity& other) {
  into.differ += other.differ;
  into.pass += other.pass;
  into.functional_refuses |= other.functional_refuses;
}

}  // namespace

Element judged_element(const Row& row, std::int64_t column, double answer, const Certified& exact,
                       double bound, const OutputRule& rule) {
  return {.row = row,
          .column = column,
          .answer = answer,
          .exact = exact.hi,
          .accepted = {},
          .error_over_bound = error_over_bound(answer, exact, bound, rule),
          .decision = accept(answer, exact, bound, rule)};
}

void TensorTally::judge(const Row& row, std::int64_t column, double answer, const Certified& exact,
                        double bound, const OutputRule& rule) {
  Element element = judged_element(row, column, answer, exact, bound, rule);
  const bool shown = !worst_element || element.decision != Decision::pass ||
                     element.error_over_bound > worst_element->error_over_bound;
  if (shown) element.accepted = wide_box(exact, bound, rule);
  add(element);
}

void TensorTally::add(const Element& element) {
  ++elements;
  failed += element.decision == Decision::fail;
  undecided += element.decision == Decision::unsure;
  keep_worse(worst_element, element);
}

void TensorTally::add(const Functional& functional) {
  functional_failed += functional.decision == Decision::fail;
  functional_undecided += functional.decision == Decision::unsure;
  keep_worse(worst_functional, functional);
}

void TensorTally::merge(const TensorTally& other) {
  rows += other.rows;
  elements += other.elements;
  failed += other.failed;
  undecided += other.undecided;
  functional_failed += other.functional_failed;
  functional_undecided += other.functional_undecided;
  if (not_applicable == 0) why_not_applicable = other.why_not_applicable;
  not_applicable += other.not_applicable;
  unconstrained += other.unconstrained;
  unbounded += other.unbounded;
  if (other.worst_element) keep_worse(worst_element, *other.worst_element);
  if (other.worst_functional) keep_worse(worst_functional, *other.worst_functional);
  oracle::merge(zeros, other.zeros);
  oracle::merge(mean, other.mean);
  oracle::merge(twice, other.twice);
  gain = std::min(gain, other.gain);
}

void PowerTally::merge(const PowerTally& other) {
  gain = std::min(gain, other.gain);
  missing_mass_lse = std::min(missing_mass_lse, other.missing_mass_lse);
  if (other.missing_mass_out < missing_mass_out) {
    missing_mass_out = other.missing_mass_out;
    missing_block = other.missing_block;
  }
}

void Suspicion::add(const Element& element) {
  suspect += element.decision == Decision::fail;
  keep_worse(worst_element, element);
}

void Suspicion::merge(const Suspicion& other) {
  rows += other.rows;
  elements += other.elements;
  suspect += other.suspect;
  if (other.worst_element) keep_worse(worst_element, *other.worst_element);
  lean += other.lean;
  remainder += other.remainder;
  variance += other.variance;
  drift += other.drift;
  drift_scale += other.drift_scale;
}

void Tally::merge(const Tally& other) {
  out.merge(other.out);
  lse.merge(other.lse);
  power.merge(other.power);
  suspicion.merge(other.suspicion);
  escalated += other.escalated;
  bits = std::max(bits, other.bits);
}

}  // namespace ringproof::oracle
