// Exercise 06: the gradients of one block. Everything between the marks is yours; the rest is the
// check. Weights are powers of two, weight(x) = 2^x, and in every row they sum to a power of two:
// no operation rounds. (The base brings a factor ln 2 to all of dq and dk; both sides of the check
// leave it out.)
#include <array>
#include <cmath>

#include "tutorials/support/check.hpp"
#include "tutorials/support/exact.hpp"

using ringproof::tutorials::Check;
using ringproof::tutorials::weight;

constexpr int kRows = 4;
using Vector = std::array<double, kRows>;
using Matrix = std::array<Vector, kRows>;  // one vector a row of the sequence

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (int d = 0; d < kRows; ++d) sum += a[d] * b[d];
  return sum;
}

struct Problem {
  Matrix q, k, v, dout;
};

/// What the forward pass leaves behind for each query row.
struct Kept {
  Vector lse, delta;  // logarithm of the denominator; dout.out
};

struct Gradients {
  Matrix dq{}, dk{}, dv{};
  bool operator==(const Gradients&) const = default;
};

/// Adds what queries [first_i, last_i) and keys [first_j, last_j) have to say to each other.
/// The score of query i and key j is dot(q_i, k_j).
void add_block(const Problem& x, const Kept& kept, int first_i, int last_i, int first_j, int last_j,
               Gradients& sum) {
  for (int i = first_i; i < last_i; ++i) {
    for (int j = first_j; j < last_j; ++j) {
      // [answer]
      //? // Your turn: P from the score and kept.lse[i], then the parts of dv_j, dq_i and dk_j.
      const double P = weight(dot(x.q[i], x.k[j]) - kept.lse[i]);
      const double dS = P * (dot(x.dout[i], x.v[j]) - kept.delta[i]);
      for (int d = 0; d < kRows; ++d) {
        sum.dv[j][d] += P * x.dout[i][d];
        sum.dq[i][d] += dS * x.k[j][d];
        sum.dk[j][d] += dS * x.q[i][d];
      }
      // [/answer]
    }
  }
}

/// The definition, from all keys of a row at once; also what the forward pass keeps.
Gradients all_at_once(const Problem& x, Kept& kept) {
  Gradients sum;
  for (int i = 0; i < kRows; ++i) {
    double l = 0, mean = 0;
    for (int j = 0; j < kRows; ++j) l += weight(dot(x.q[i], x.k[j]));
    for (int j = 0; j < kRows; ++j) {
      mean += weight(dot(x.q[i], x.k[j])) / l * dot(x.dout[i], x.v[j]);
    }
    kept.lse[i] = std::log2(l);
    kept.delta[i] = mean;
    for (int j = 0; j < kRows; ++j) {
      const double share = weight(dot(x.q[i], x.k[j])) / l;
      for (int d = 0; d < kRows; ++d) {
        sum.dv[j][d] += share * x.dout[i][d];
        sum.dq[i][d] += share * (dot(x.dout[i], x.v[j]) - mean) * x.k[j][d];
        sum.dk[j][d] += share * (dot(x.dout[i], x.v[j]) - mean) * x.q[i][d];
      }
    }
  }
  return sum;
}

int main() {
  Check check("06");
  // Scores of each row: 0, 0, 1, 2 in some order, and 1 + 1 + 2 + 4 is a power of two.
  const Problem x{.q = {{{-1, 1, -1, 2}, {-1, 2, -2, 2}, {1, 1, 0, 0}, {-3, 3, -1, 1}}},
                  .k = {{{1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}}},
                  .v = {{{1, 0, 2, -1}, {3, 1, 0, 2}, {-2, 1, 1, 0}, {0, 4, -1, 1}}},
                  .dout = {{{1, 2, 0, -1}, {0, 1, 1, 0}, {2, -1, 0, 1}, {1, 1, -2, 0}}}};
  Kept kept{};
  const Gradients expected = all_at_once(x, kept);
  for (const int b : {4, 2, 1}) {
    Gradients sum;
    for (int i = 0; i < kRows; i += b) {
      for (int j = 0; j < kRows; j += b) add_block(x, kept, i, i + b, j, j + b, sum);
    }
    const std::string where = fmt::format("blocks of {} rows: ", b);
    check.holds(where + "dv", sum.dv == expected.dv);
    check.holds(where + "dq", sum.dq == expected.dq);
    check.holds(where + "dk", sum.dk == expected.dk);
  }
  return check.finish();
}
