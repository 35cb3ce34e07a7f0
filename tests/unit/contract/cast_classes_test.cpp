// Which casts of a row count as one: keys whose weights have the same significand, or may have it.
#include "oracle/contract/cast_classes.hpp"

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

namespace {

constexpr double kOctave = std::numbers::ln2;

/// The sum of the squared sizes of the classes: the variance of ones.
double squares(const std::vector<double>& scores, double common, double more = 0) {
  RowKeys keys;
  keys.visible = static_cast<std::int64_t>(scores.size());
  keys.score = scores;
  keys.common.assign(scores.size(), common);
  CastClasses classes;
  classes.find(keys, more, 0.0);
  return classes.variance([](std::size_t) { return -1.0; });
}

}  // namespace

TEST_CASE("weights with one significand share the error of their cast") {
  CHECK(squares({}, 0) == 0);
  CHECK(squares({-0.25, -0.25, -0.25}, 0) == 9);
  CHECK(squares({-0.25, -0.5, -0.625}, 0) == 3);
  // A factor of two leaves the significand, whatever the order of the keys.
  CHECK(squares({-0.25, -0.5, -0.25 - kOctave}, 0x1p-40) == 5);
  CHECK(squares({-0.5, -0.25 - 3 * kOctave, -0.25}, 0x1p-40) == 5);
}

TEST_CASE("weights that may have one significand count as if they had it") {
  const double apart = 0x1p-10;  // in octaves
  const std::vector<double> scores{-0.25, -0.25 - apart * kOctave};
  CHECK(squares(scores, apart / 3.9) == 4);  // 2 (C + C) >= apart
  CHECK(squares(scores, apart / 4.1) == 2);
  CHECK(squares(scores, 0, apart / 3.9) == 4);  // 2 (2 more) >= apart
  CHECK(squares(scores, 0, apart / 4.1) == 2);
  // Each may be its neighbour's: a chain is one class.
  CHECK(squares({-0.25, -0.25 - apart * kOctave, -0.25 - 2 * apart * kOctave}, apart / 3) == 9);
}

TEST_CASE("just below a power of two and just above it significands meet") {
  const double near = 0x1p-12 * kOctave;
  CHECK(squares({-kOctave + near, -kOctave - near, -0.3}, 0x1p-10) == 5);
  CHECK(squares({-kOctave + near, -kOctave - near, -0.3}, 0x1p-16) == 3);
}

TEST_CASE("the error of a cast is that of its significand") {
  CHECK(cast_error(0, 0x1p-9) == 0);
  CHECK(cast_error(0.75, 0) == 0);
  CHECK(cast_error(0.75, 0x1p-9) == 0);
  const double above = 1 + 0x1p-8 - 0x1p-12;  // rounds up to 1 + 2^-8, at any power of two
  CHECK(cast_error(above, 0x1p-9) == (1 + 0x1p-8) / above - 1);
  CHECK(cast_error(above * 0x1p-20, 0x1p-9) == cast_error(above, 0x1p-9));
}
