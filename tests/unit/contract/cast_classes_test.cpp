// Which casts of a row count as one: keys whose weights have the same significand, or may have it.
#include "oracle/contract/cast_classes.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/property.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

constexpr double kOctave = std::numbers::ln2;

/// The sum of the squared sizes of the classes: the variance of ones.
double squares(const std::vector<double>& scores, std::vector<double> common, double more = 0) {
  RowKeys keys;
  keys.visible = static_cast<std::int64_t>(scores.size());
  keys.score = scores;
  keys.common = std::move(common);
  CastClasses classes;
  classes.find(keys, more, 0.0);
  return classes.variance([](std::size_t) { return -1.0; });
}
double squares(const std::vector<double>& scores, double common, double more = 0) {
  return squares(scores, std::vector<double>(scores.size(), common), more);
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

TEST_CASE("a key that is known well does not part two neighbours that are not") {
  const double step = 0x1p-10;  // in octaves
  const auto at = [&](double octaves) { return -0.25 - octaves * kOctave; };
  // The outer two are 4 steps apart and off by 2 each; from the middle it is 2.2 to either.
  const std::vector<double> common{0.9 * step, 0, 1.2 * step};
  CHECK(squares({at(0), at(2.2), at(4)}, common) == 5);
  CHECK(squares({at(4), at(1.8), at(0)}, common) == 5);
}

TEST_CASE("classes are those of all pairs, joined, around the circle") {
  test::property("arcs that overlap are one class", [] {
    const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 12));
    std::vector<double> scores, common;
    for (std::size_t j = 0; j < count; ++j) {
      scores.push_back(-*rc::gen::inRange(0, 4096) * 0x1p-10 * kOctave);
      common.push_back(*rc::gen::inRange(0, 6) == 0 ? *rc::gen::inRange(0, 300) * 0x1p-10
                                                    : *rc::gen::inRange(0, 40) * 0x1p-10);
    }
    std::vector<std::size_t> root(count);
    std::iota(root.begin(), root.end(), std::size_t{0});
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double apart = std::abs(scores[a] - scores[b]) / kOctave;
        const double around = std::abs(apart - std::nearbyint(apart));
        if (around > 2 * (common[a] + common[b]) + 0x1p-30) continue;
        const std::size_t from = root[a], to = root[b];
        std::replace(root.begin(), root.end(), from, to);
      }
    }
    double expected = 0;
    for (std::size_t j = 0; j < count; ++j) {
      expected += static_cast<double>(std::count(root.begin(), root.end(), root[j]));
    }
    for (double& one : common) one += 0x1p-31;  // on the grid arcs may touch
    RC_ASSERT(squares(scores, common) == expected);
  });
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
