// One expected number against one stored number, and one mistake against many: what refutes it,
// what leaves it open, and which form of an LSE is left.
#include "oracle/diagnose/comparison.hpp"

#include <cmath>

#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Kind = Expected::Kind;
const OutputRule kSingle{.dtype = DType::f32};
constexpr Row kRow{0, 0, 0};

/// One row of two columns with these answers.
struct Answers {
  CaseBuilder builder;
  Case input;
  JudgedAnswers judged;
  Answers(double first, double second, double lse) {
    builder = random_case(DType::f32, {.heads = 1, .queries = 1, .value_dim = 2});
    builder.set("out", make_tensor(DType::f32, {1, 1, 1, 2},
                                   [&](std::int64_t n) { return n == 0 ? first : second; }));
    builder.set("lse", make_tensor(DType::f32, {1, 1, 1}, [&](std::int64_t) { return lse; }));
    input = builder.assemble();
    judged = {&input.find(AnswerKind::out)->tensor, &input.find(AnswerKind::lse)->tensor, kSingle};
  }
};

ExpectedRow row_of(double first, double second, std::vector<ExpectedRow::Lse> lse) {
  return {{Expected::value(first, 0x1p-10), Expected::value(second, 0x1p-10)}, std::move(lse)};
}

const Contract kContract = read_contract("fp32", Spec{});

}  // namespace

TEST_CASE("an expected number is refuted by what lies outside its box, and by nothing else") {
  const Expected ball = Expected::value(1, 0x1p-10);
  CHECK_FALSE(refutes(1 + 0x1p-10, ball, kSingle));
  CHECK(refutes(1 + 0x1p-9, ball, kSingle));
  CHECK(refutes(NAN, ball, kSingle));
  const Expected nan = Expected::of_kind(Kind::nan);
  CHECK_FALSE(refutes(NAN, nan, kSingle));
  CHECK(refutes(0, nan, kSingle));
  CHECK(refutes(HUGE_VAL, nan, kSingle));
  const Expected not_finite = Expected::of_kind(Kind::not_finite);
  CHECK_FALSE(refutes(NAN, not_finite, kSingle));
  CHECK_FALSE(refutes(-HUGE_VAL, not_finite, kSingle));
  CHECK(refutes(7, not_finite, kSingle));
  for (const double answer : {0.0, double{NAN}, HUGE_VAL}) {
    CHECK_FALSE(refutes(answer, Expected::of_kind(Kind::anything), kSingle));
  }
  CHECK_FALSE(refutes(-HUGE_VAL, Expected::value(-HUGE_VAL), kSingle));
  CHECK(refutes(-1e30, Expected::value(-HUGE_VAL), kSingle));
  // An infinite bound, or none: nothing is known.
  CHECK_FALSE(refutes(1e30, Expected::value(1, HUGE_VAL), kSingle));
  CHECK_FALSE(refutes(1e30, Expected::value(1, NAN), kSingle));
}

TEST_CASE("an expected LSE is compared in the base of the contract") {
  Contract binary = kContract;
  binary.lse.base = LseBase::two;
  const Expected natural = Expected::value(1, 0x1p-10);
  CHECK_FALSE(refutes_lse(1, natural, kContract, DType::f32));
  CHECK(refutes_lse(1.4426950408889634, natural, kContract, DType::f32));
  CHECK_FALSE(
      refutes_lse(round_nearest(DType::f32, 1.4426950408889634), natural, binary, DType::f32));
  CHECK(refutes_lse(1, natural, binary, DType::f32));
}

TEST_CASE("one element or the LSE refutes a mistake") {
  const auto refuted = [](double first, double second, double lse) {
    const Answers answers(first, second, lse);
    Comparison comparison;
    const ExpectedRow expected = row_of(1, 2, {{"", Expected::value(3, 0x1p-10)}});
    comparison.add_out(answers.judged, kRow, expected);
    comparison.add_lse(answers.judged, kRow, expected, kContract);
    return comparison.refuted();
  };
  CHECK_FALSE(refuted(1, 2, 3));
  CHECK(refuted(1.5, 2, 3));
  CHECK(refuted(1, 2.5, 3));
  CHECK(refuted(1, 2, 3.5));
}

TEST_CASE("of several forms of the LSE one has to be left in all rows") {
  const std::vector<ExpectedRow::Lse> forms{{"right", Expected::value(3, 0x1p-10)},
                                            {"of the sum", Expected::value(5, 0x1p-10)}};
  const ExpectedRow expected = row_of(1, 2, forms);
  const Answers right(1, 2, 3), other(1, 2, 5), neither(1, 2, 4);
  Comparison one;
  one.add_lse(right.judged, kRow, expected, kContract);
  CHECK_FALSE(one.refuted());
  CHECK(one.lse_words() == "right");
  one.add_lse(other.judged, kRow, expected, kContract);
  CHECK(one.refuted());
  Comparison second;
  second.add_lse(other.judged, kRow, expected, kContract);
  CHECK(second.lse_words() == "of the sum");
  Comparison none;
  none.add_lse(neither.judged, kRow, expected, kContract);
  CHECK(none.refuted());
}

TEST_CASE("what a mistake leaves to chance is counted and refutes nothing") {
  const Answers answers(7, 2, 9);
  ExpectedRow expected = row_of(1, 2, {{"", Expected::of_kind(Kind::anything)}});
  expected.out[0] = Expected::of_kind(Kind::anything);
  Comparison comparison;
  comparison.add_out(answers.judged, kRow, expected);
  comparison.add_lse(answers.judged, kRow, expected, kContract);
  CHECK_FALSE(comparison.refuted());
  CHECK(comparison.elements() == 3);
  CHECK(comparison.open() == 2);
  CHECK(comparison.open_out().size() == 1);
  CHECK(comparison.open_lse().size() == 1);
}

TEST_CASE("a mistake tells itself from the truth where it refuses the right number") {
  const Answers answers(1.5, 2, 3);
  const auto tells = [&](double expected_out, double right, bool of_lse) {
    Comparison comparison;
    const ExpectedRow expected = row_of(expected_out, 2, {{"", Expected::value(3, 0x1p-10)}});
    comparison.compare_with_truth(answers.judged, {of_lse, kRow, 0, right}, expected, kContract);
    return comparison.tells_from_truth();
  };
  CHECK(tells(1.5, 1, false));
  CHECK_FALSE(tells(1, 1, false));  // its box holds the right number as well
  CHECK(tells(1, 4, true));
  CHECK_FALSE(tells(1, 3, true));
}
