// The generator's numbers are fixed: a seed means the same case for everybody, for ever.
#include <algorithm>
#include <cmath>
#include <set>

#include "oracle/generate/random.hpp"
#include "tests/support/catch.hpp"

using ringproof::oracle::Random;

TEST_CASE("the first numbers of a stream never change") {
  Random random(1, "case/q");
  CHECK(random.bits() == 0x654620f7f24d949a);
  CHECK(random.bits() == 0xc532ecbe97e2030c);
  CHECK(random.normal() * 65536 == -11528);
  CHECK(random.uniform() == 0x1.a7bec1d7a39c4p-1);
  CHECK(random.below(1000) == 162);
}

TEST_CASE("streams differ by seed and by name") {
  std::set<std::uint64_t> first;
  for (const std::uint64_t seed : {0, 1, 2}) {
    for (const char* name : {"", "a", "b", "ab"}) first.insert(Random(seed, name).bits());
  }
  CHECK(first.size() == 12);
}

TEST_CASE("normal numbers are multiples of 2^-16 within (-6, 6) with mean 0 and variance 1") {
  constexpr int kCount = 1 << 16;
  Random random(7, "normal");
  double sum = 0, squares = 0;
  for (int n = 0; n < kCount; ++n) {
    const double x = random.normal();
    REQUIRE(std::abs(x) < 6);
    REQUIRE(x * 65536 == std::trunc(x * 65536));
    sum += x;
    squares += x * x;
  }
  // Five standard deviations of a mean and of a mean square over so many draws.
  CHECK(std::abs(sum) < 5 * std::sqrt(double{kCount}));
  CHECK(std::abs(squares - kCount) < 5 * std::sqrt(2.0 * kCount));
}

TEST_CASE("numbers below a bound take every value") {
  Random random(3, "below");
  std::set<std::int64_t> seen;
  for (int n = 0; n < 400; ++n) seen.insert(random.below(7));
  CHECK(seen == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}
