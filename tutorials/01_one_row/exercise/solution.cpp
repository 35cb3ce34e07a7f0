// Exercise 01: one row in one pass. Everything between the marks is yours; the rest is the check.
// Weights are powers of two here, weight(x) = 2^x: with the integer scores below no operation
// rounds, so that right and wrong differ by more than a last digit.
#include <algorithm>
#include <limits>
#include <vector>

#include "tutorials/support/check.hpp"
#include "tutorials/support/exact.hpp"

using ringproof::tutorials::Check;
using ringproof::tutorials::weight;

struct State {
  double m = -std::numeric_limits<double>::infinity();  // largest score so far
  double l = 0;                                         // sum of weight(s - m)
  double o = 0;                                         // sum of weight(s - m) v
};

/// Takes one more key into the state.
void add_key(State& state, double s, double v) {
  // [answer]
  //? // Your turn: the new maximum, the factor that brings the old sums to it, then the new term.
  const double m = std::max(state.m, s);
  const double alpha = weight(state.m - m);
  state.l = alpha * state.l + weight(s - m);
  state.o = alpha * state.o + weight(s - m) * v;
  state.m = m;
  // [/answer]
}

/// What the state must be after the first `count` keys: all scores at once.
State all_at_once(const std::vector<double>& s, const std::vector<double>& v, std::size_t count) {
  State sums;
  for (std::size_t j = 0; j < count; ++j) sums.m = std::max(sums.m, s[j]);
  for (std::size_t j = 0; j < count; ++j) {
    sums.l += weight(s[j] - sums.m);
    sums.o += weight(s[j] - sums.m) * v[j];
  }
  return sums;
}

int main() {
  Check check("01");
  const std::vector<double> v{1, 2, 3, 4};
  for (const std::vector<double>& s : {std::vector<double>{1, 2, 3, 0},  // the chapter's
                                       {3, 2, 1, 0},                     // the largest comes first
                                       {-5, -4, -1, 2},                  // and last
                                       {2, 2, 2, 2},
                                       {3000, 3001, 2999, 3003}}) {  // 2^s is beyond every double
    State state;
    for (std::size_t j = 0; j < s.size(); ++j) {
      add_key(state, s[j], v[j]);
      const State expected = all_at_once(s, v, j + 1);
      const std::string where = fmt::format("scores {}, {}, ..., after key {}", s[0], s[1], j);
      check.equal(where + ": m", state.m, expected.m);
      check.equal(where + ": l", state.l, expected.l);
      check.equal(where + ": o", state.o, expected.o);
    }
  }
  return check.finish();
}
