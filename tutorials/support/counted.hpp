// A number type that counts: how many numbers are alive, how many were at most, and how many
// products were formed. The reference is a template on the number type, so the ring itself runs
// under the count, unchanged. Not for threads.
#pragma once

#include <cmath>

#include "reference/ring.hpp"

namespace ringproof::tutorials {

struct Counted {
  float x = 0;
  static inline long alive = 0, most = 0, products = 0;

  Counted(float value = 0) : x(value) { born(); }
  Counted(const Counted& other) : x(other.x) { born(); }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }

  friend Counted operator+(const Counted& a, const Counted& b) { return a.x + b.x; }
  friend Counted operator-(const Counted& a, const Counted& b) { return a.x - b.x; }
  friend Counted operator*(const Counted& a, const Counted& b) {
    ++products;
    return a.x * b.x;
  }
  friend Counted operator/(const Counted& a, const Counted& b) { return a.x / b.x; }
  friend bool operator<(const Counted& a, const Counted& b) { return a.x < b.x; }
  friend bool operator==(const Counted& a, const Counted& b) { return a.x == b.x; }

 private:
  static void born() {
    if (++alive > most) most = alive;
  }
};

}  // namespace ringproof::tutorials

template <>
struct ringproof::reference::Number<ringproof::tutorials::Counted> {
  using Counted = tutorials::Counted;
  using Float = Number<float>;
  static Counted minus_infinity() { return Float::minus_infinity(); }
  static Counted not_a_number() { return Float::not_a_number(); }
  static Counted exponential(const Counted& s) { return Float::exponential(s.x); }
  static Counted logarithm(const Counted& w) { return Float::logarithm(w.x); }
  static Counted hyperbolic_tangent(const Counted& s) { return Float::hyperbolic_tangent(s.x); }
  static Counted inverse_square_root(Index n) { return Float::inverse_square_root(n); }
};

namespace ringproof::tutorials {

/// What a ring of `ranks` ranks costs, b rows each, D = Dv = d, one head.
struct Cost {
  long most_alive = 0;  // numbers of all ranks together, the problem's own not counted
  long products = 0;    // of all ranks and steps
  reference::Trace trace;
};

/// Runs the ring. `keep_own`: does every rank keep its own block beside those that pass through?
// [measure]
inline Cost measure(reference::Index ranks, reference::Index b, reference::Index d, bool keep_own) {
  using namespace reference;
  const std::vector<Counted> data(ranks * b * d, Counted(0.25F));
  const auto view = row_major<Counted>(data, {1, 1, ranks * b, d});
  const Problem<Counted> problem{.queries = ranks * b,
                                 .keys = ranks * b,
                                 .head_dim = d,
                                 .value_dim = d,
                                 .q = view,
                                 .k = view,
                                 .v = view};
  const long before = Counted::alive;

  std::vector<Shard<Counted>> shards = scatter(problem, Layout::contiguous, ranks);
  std::vector<KeyBlock<Counted>> own;
  for (const auto& shard : shards) {
    if (keep_own) own.push_back(shard.keys);
  }
  Cost cost;
  Counted::most = Counted::products = 0;
  ring(problem, Direction::down, std::move(shards), cost.trace);
  cost.most_alive = Counted::most - before;
  cost.products = Counted::products;
  return cost;
}
// [/measure]

}  // namespace ringproof::tutorials
