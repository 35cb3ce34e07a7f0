// Exercise 02: join the states of two blocks. Everything between the marks is yours; the rest is
// the check. Weights are powers of two, weight(x) = 2^x, so that no operation below rounds.
#include <algorithm>
#include <limits>
#include <vector>

#include "tutorials/support/check.hpp"
#include "tutorials/support/exact.hpp"

using ringproof::tutorials::Check;
using ringproof::tutorials::weight;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct State {
  double m = kMinusInfinity;  // largest score
  double l = 0;               // sum of weight(s - m)
  double o = 0;               // sum of weight(s - m) v
  bool operator==(const State&) const = default;
};

/// The state of the keys of both; the two have no key in common.
State merge(const State& a, const State& b) {
  // [answer]
  //? // Your turn. Mind that either state, or both, may be that of no key.
  //? return a;
  State joined;
  joined.m = std::max(a.m, b.m);
  if (joined.m == kMinusInfinity) return joined;
  const double alpha = weight(a.m - joined.m), beta = weight(b.m - joined.m);
  joined.l = alpha * a.l + beta * b.l;
  joined.o = alpha * a.o + beta * b.o;
  return joined;
  // [/answer]
}

/// The state of keys first ... last - 1, all at once.
State state_of(const std::vector<double>& s, const std::vector<double>& v, std::size_t first,
               std::size_t last) {
  State sums;
  for (std::size_t j = first; j < last; ++j) sums.m = std::max(sums.m, s[j]);
  for (std::size_t j = first; j < last; ++j) {
    sums.l += weight(s[j] - sums.m);
    sums.o += weight(s[j] - sums.m) * v[j];
  }
  return sums;
}

int main() {
  Check check("02");
  const std::vector<double> s{1, 2, 3, 0, -4, 6, 2000, 5}, v{1, 2, 3, 4, -1, 2, 1, 7};
  const State none;
  check.holds("two states of no key give the state of no key", merge(none, none) == none);
  for (std::size_t first = 0; first < s.size(); ++first) {
    for (std::size_t last = first + 1; last <= s.size(); ++last) {
      const State whole = state_of(s, v, first, last);
      const std::string keys = fmt::format("keys {} to {}", first, last - 1);
      check.holds(keys + ", merged with no key", merge(whole, none) == whole);
      check.holds("no key merged with " + keys, merge(none, whole) == whole);
      for (std::size_t cut = first + 1; cut < last; ++cut) {
        const State a = state_of(s, v, first, cut), b = state_of(s, v, cut, last);
        check.holds(fmt::format("{} from two parts, cut at {}", keys, cut), merge(a, b) == whole);
        check.holds(fmt::format("{} with the parts exchanged", keys), merge(b, a) == whole);
      }
    }
  }
  return check.finish();
}
