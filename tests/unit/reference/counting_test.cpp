// What the ring costs, counted by a number type that counts: multiplications against bytes (C14).
#include <cmath>

#include "reference/ring.hpp"
#include "tests/support/catch.hpp"

namespace {

/// A double that counts multiplications.
struct Counted {
  double value = 0;
  static inline long multiplications = 0;

  Counted() = default;
  Counted(double number) : value(number) {}
};
Counted operator+(Counted a, Counted b) { return a.value + b.value; }
Counted operator-(Counted a, Counted b) { return a.value - b.value; }
Counted operator/(Counted a, Counted b) { return a.value / b.value; }
Counted operator*(Counted a, Counted b) {
  ++Counted::multiplications;
  return a.value * b.value;
}
bool operator==(Counted a, Counted b) { return a.value == b.value; }
bool operator<(Counted a, Counted b) { return a.value < b.value; }

}  // namespace

template <>
struct ringproof::reference::Number<Counted> {
  static Counted minus_infinity() { return -INFINITY; }
  static Counted not_a_number() { return NAN; }
  static Counted exponential(Counted x) { return std::exp(x.value); }
  static Counted logarithm(Counted x) { return std::log(x.value); }
  static Counted hyperbolic_tangent(Counted x) { return std::tanh(x.value); }
};

using namespace ringproof::reference;

namespace {

struct Cost {
  double multiplications, bytes;  // of one rank at one step
};

/// Mean cost of a step of a ring of P ranks with b rows each, D = Dv = d.
Cost cost_of_step(Index b, Index d, Index P) {
  const std::vector<Counted> numbers(b * P * d, Counted(0.25));
  Problem<Counted> problem{.queries = b * P, .keys = b * P, .head_dim = d, .value_dim = d};
  problem.q = problem.k = problem.v = row_major<Counted>(numbers, {1, 1, b * P, d});
  auto shards = scatter(problem, Layout::contiguous, P);
  Trace trace;
  Counted::multiplications = 0;
  ring(problem, Direction::down, std::move(shards), trace);
  // Per pair d products for q.k, one for the scale, d for p v; per row one rescaling of l and of o.
  CHECK(Counted::multiplications == P * P * (b * b * (2 * d + 1) + b * (d + 1)));
  Index bytes = 0;
  for (const TraceEvent& event : trace) {
    if (event.action == Action::post) bytes += event.bytes;
  }
  CHECK(bytes == P * (P - 1) * 2 * b * d * static_cast<Index>(sizeof(Counted)));
  return {static_cast<double>(Counted::multiplications) / static_cast<double>(P * P),
          static_cast<double>(bytes) / static_cast<double>(P * (P - 1))};
}

/// The exponent of growth when a size doubles, in tenths.
long exponent_in_tenths(double small, double large) {
  return std::lround(10 * std::log2(large / small));
}

}  // namespace

TEST_CASE(
    "C14: a step moves O(b d) and computes O(b^2 d): fitted exponents 1 and 2 in b, 1 and 1 in d") {
  const Cost base = cost_of_step(32, 16, 3);
  const Cost longer = cost_of_step(64, 16, 3), wider = cost_of_step(32, 32, 3);
  CHECK(exponent_in_tenths(base.bytes, longer.bytes) == 10);
  CHECK(exponent_in_tenths(base.multiplications, longer.multiplications) == 20);
  CHECK(exponent_in_tenths(base.bytes, wider.bytes) == 10);
  CHECK(exponent_in_tenths(base.multiplications, wider.multiplications) == 10);
  // Their ratio grows like b alone.
  CHECK(exponent_in_tenths(base.multiplications / base.bytes,
                           longer.multiplications / longer.bytes) == 10);
  CHECK(exponent_in_tenths(base.multiplications / base.bytes,
                           wider.multiplications / wider.bytes) == 0);
}
