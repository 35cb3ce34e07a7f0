// What is counted, and what two tallies are together: by hand, with numbers that differ everywhere.
#include "oracle/judge/tally.hpp"

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

namespace {

Element element(Decision decision, double error, std::int64_t column = 0) {
  Element one;
  one.column = column, one.error_over_bound = error, one.decision = decision;
  return one;
}

Functional functional(Decision decision, double value) {
  Functional one;
  one.value = value, one.bound = 1, one.decision = decision;
  return one;
}

/// Counts that differ from each other, all times `unit`.
TensorTally counts(std::int64_t unit) {
  TensorTally tally;
  tally.rows = unit, tally.elements = 2 * unit, tally.failed = 3 * unit;
  tally.undecided = 4 * unit, tally.functional_failed = 5 * unit;
  tally.functional_undecided = 6 * unit, tally.not_applicable = 7 * unit;
  tally.unconstrained = 8 * unit, tally.unbounded = 9 * unit;
  return tally;
}

}  // namespace

TEST_CASE("elements are counted by what is decided of them, and so are functionals") {
  TensorTally tally;
  for (const Decision decision : {Decision::pass, Decision::fail, Decision::unsure, Decision::pass,
                                  Decision::unsure, Decision::unsure}) {
    tally.add(element(decision, 0.5));
    tally.add(functional(decision, 0.5));
  }
  CHECK(tally.elements == 6);
  CHECK(tally.failed == 1);
  CHECK(tally.undecided == 3);
  CHECK(tally.functional_failed == 1);
  CHECK(tally.functional_undecided == 3);
  Suspicion suspicion;
  for (const Decision decision : {Decision::pass, Decision::fail, Decision::fail}) {
    suspicion.add(element(decision, 0.5));
  }
  CHECK(suspicion.suspect == 2);
}

TEST_CASE("the worst is a failure before a doubt before a pass, then the larger error, the first") {
  const Element in_order[] = {
      element(Decision::pass, 0.25, 1),    element(Decision::pass, 0.5, 2),
      element(Decision::unsure, 0.125, 3), element(Decision::unsure, 0.75, 4),
      element(Decision::fail, 1.5, 5),     element(Decision::fail, 2, 6)};
  for (const Element& better : in_order) {
    for (const Element& worse : in_order) {
      if (worse.column <= better.column) continue;
      TensorTally upwards, downwards, merged, from;
      upwards.add(better), upwards.add(worse);
      downwards.add(worse), downwards.add(better);
      merged.add(better), from.add(worse), merged.merge(from);
      CHECK(upwards.worst_element->column == worse.column);
      CHECK(downwards.worst_element->column == worse.column);
      CHECK(merged.worst_element->column == worse.column);
    }
  }
  TensorTally equal;
  equal.add(element(Decision::pass, 0.5, 7)), equal.add(element(Decision::pass, 0.5, 8));
  CHECK(equal.worst_element->column == 7);
  TensorTally rows;
  rows.add(functional(Decision::unsure, 0.5)), rows.add(functional(Decision::pass, 0.75));
  CHECK(rows.worst_functional->value == 0.5);
}

TEST_CASE("two tallies together count what either counts, and keep the smaller gain") {
  TensorTally a = counts(1), b = counts(10);
  a.not_applicable = 0, b.why_not_applicable = "H1";
  a.zeros = {1, 2, false}, a.mean = {3, 4, true}, a.twice = {5, 6, false};
  b.zeros = {10, 20, true}, b.mean = {30, 40, false}, b.twice = {50, 60, false};
  a.gain = 0.5, b.gain = 0.25;
  a.merge(b);
  CHECK(a.rows == 11);
  CHECK(a.elements == 22);
  CHECK(a.failed == 33);
  CHECK(a.undecided == 44);
  CHECK(a.functional_failed == 55);
  CHECK(a.functional_undecided == 66);
  CHECK(a.not_applicable == 70);
  CHECK(a.unconstrained == 88);
  CHECK(a.unbounded == 99);
  CHECK(a.why_not_applicable == "H1");
  CHECK(a.gain == 0.25);
  const auto is = [](const Vacuity& x, std::int64_t differ, std::int64_t pass, bool refuses) {
    return x.differ == differ && x.pass == pass && x.functional_refuses == refuses;
  };
  CHECK(is(a.zeros, 11, 22, true));
  CHECK(is(a.mean, 33, 44, true));
  CHECK(is(a.twice, 55, 66, false));
  b.why_not_applicable = "another";
  a.merge(b);
  CHECK(a.why_not_applicable == "H1");
}

TEST_CASE("errors that lean, their variances and what may drift add up over rows") {
  Suspicion a{.rows = 1,
              .elements = 2,
              .suspect = 3,
              .lean = 4,
              .remainder = 5,
              .variance = 6,
              .drift = 7,
              .drift_scale = 8};
  const Suspicion b{.rows = 10,
                    .elements = 20,
                    .suspect = 30,
                    .lean = 40,
                    .remainder = 50,
                    .variance = 60,
                    .drift = 70,
                    .drift_scale = 80};
  a.merge(b);
  CHECK(a.rows == 11);
  CHECK(a.elements == 22);
  CHECK(a.suspect == 33);
  CHECK(a.lean == 44);
  CHECK(a.remainder == 55);
  CHECK(a.variance == 66);
  CHECK(a.drift == 77);
  CHECK(a.drift_scale == 88);
  CHECK_FALSE(a.worst_element.has_value());
}

TEST_CASE("the power of two tallies is that of the better row, its block with its mass") {
  Tally a, b;
  a.power = {.gain = 0.5, .missing_mass_lse = 0.25, .missing_mass_out = 0.125, .missing_block = 4};
  b.power = {
      .gain = 0.75, .missing_mass_lse = 0.0625, .missing_mass_out = 0.5, .missing_block = 16};
  a.escalated = 1, b.escalated = 2, a.bits = 128, b.bits = 256;
  Tally there = a, back = b;
  there.merge(b), back.merge(a);
  for (const Tally& both : {there, back}) {
    CHECK(both.power.gain == 0.5);
    CHECK(both.power.missing_mass_lse == 0.0625);
    CHECK(both.power.missing_mass_out == 0.125);
    CHECK(both.power.missing_block == 4);
    CHECK(both.escalated == 3);
    CHECK(both.bits == 256);
  }
}

TEST_CASE("a functional over its bound, and an answer that is accepted everywhere") {
  const auto ratio = [](double value, double bound) {
    return Functional{.row = {}, .value = value, .bound = bound}.error_over_bound();
  };
  CHECK(ratio(3, 4) == 0.75);
  CHECK(ratio(0, 0) == 0);
  CHECK(ratio(1, 0) == HUGE_VAL);
  CHECK(Vacuity{.differ = 2, .pass = 2}.accepted_everywhere());
  CHECK_FALSE(Vacuity{.differ = 2, .pass = 1}.accepted_everywhere());
  CHECK_FALSE(Vacuity{}.accepted_everywhere());
  CHECK_FALSE(Vacuity{.differ = 2, .pass = 2, .functional_refuses = true}.accepted_everywhere());
}
