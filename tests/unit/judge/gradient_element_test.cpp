// One element of a gradient: what it says about answers that nobody gave, zeros and twice the
// truth.
#include "oracle/judge/gradient_element.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

namespace {

const OutputRule kSingle{.dtype = DType::f32};

TensorTally tally_of(const Certified& exact, double bound, double answer) {
  TensorTally tally;
  add_gradient_element({0, 0, 0}, 0, answer, exact, bound, kSingle, tally);
  return tally;
}

}  // namespace

TEST_CASE("zeros and twice an element pass where its bound reaches them") {
  for (const double exact : {1.0, -1.0}) {
    const TensorTally narrow = tally_of({exact, 0, 0}, 0.5, exact);
    CHECK(narrow.zeros.differ == 1);
    CHECK(narrow.zeros.pass == 0);
    CHECK(narrow.twice.differ == 1);
    CHECK(narrow.twice.pass == 0);
    const TensorTally wide = tally_of({exact, 0, 0}, 1, exact);
    CHECK(wide.zeros.pass == 1);
    CHECK(wide.twice.pass == 1);
    // Half a step of f32 at 2 is rounded away, nothing at 0 is.
    const TensorTally between = tally_of({exact, 0, 0}, 1 - 0x1p-30, exact);
    CHECK(between.zeros.pass == 0);
    CHECK(between.twice.pass == 1);
    // What the truth may be off counts as the bound does.
    CHECK(tally_of({exact, 0, 0.5}, 0.5, exact).zeros.pass == 1);
  }
}

TEST_CASE("an element whose truth may be zero says nothing about zeros") {
  for (const Certified& exact : {Certified{0, 0, 0}, Certified{0x1p-40, 0, 0x1p-30}}) {
    const TensorTally tally = tally_of(exact, 0x1p-20, 0);
    CHECK(tally.elements == 1);
    CHECK(tally.zeros.differ == 0);
    CHECK(tally.twice.differ == 0);
    CHECK(std::isinf(tally.gain));
  }
}

TEST_CASE("an element without a bound is counted and not judged") {
  const TensorTally tally = tally_of({1, 0, 0}, HUGE_VAL, 7);
  CHECK(tally.unbounded == 1);
  CHECK(tally.elements == 0);
  CHECK(tally.failed == 0);
  CHECK(tally.zeros.differ == 0);
}

TEST_CASE("a gain beyond the one that is claimed to be refused is refused, and not by far") {
  const Certified exact{3, 0, 0};
  const double bound = 0x1p-10, gain = tally_of(exact, bound, 3).gain;
  REQUIRE(gain > 0);
  // The smallest conforming value, gained that much, and stored.
  const double stored = round_nearest(DType::f32, (3 - bound) * (1 + gain));
  CHECK(tally_of(exact, bound, round_nearest(DType::f32, stored + 0x1p-20)).failed == 1);
  CHECK(tally_of(exact, bound, round_nearest(DType::f32, (3 - bound) * (1 + gain / 2))).failed ==
        0);
  CHECK(gain < 3 * bound / 3);
  CHECK(gain > 2 * bound / 3);
}
