// tutorial-06: gradients of one row, from all keys and block by block; then the backward ring: what
// it does, how far the gradients travel, and that they are those of dense attention.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/dense_backward.hpp"
#include "reference/ring_backward.hpp"
#include "tutorials/support/exact.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

// The row of chapters 01 and 02.
using Row = std::array<double, 4>;
constexpr Row kScores{1, 2, 3, 0}, kValues{1, 2, 3, 4};

double out_of(const Row& s, const Row& v) {
  double l = 0, o = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    l += std::exp(s[j] - 3);
    o += std::exp(s[j] - 3) * v[j];
  }
  return o / l;
}

double lse_of(const Row& s) {
  double l = 0;
  for (const double score : s) l += std::exp(score - 3);
  return 3 + std::log(l);
}

/// How fast the output changes when one entry of a row does: a difference, no formula.
double slope(bool of_scores, std::size_t j) {
  constexpr double kStep = 1.0 / 4096;
  Row s = kScores, v = kValues;
  double& moved = of_scores ? s[j] : v[j];
  moved += kStep;
  const double above = out_of(s, v);
  moved -= 2 * kStep;
  return (above - out_of(s, v)) / (2 * kStep);
}

void print_row() {
  const double lse = lse_of(kScores), delta = out_of(kScores, kValues);
  fmt::print("L = {:.6f}, out = {:.6f}, Delta = {:.6f}\n", lse, delta, delta);
  fmt::print("key   s   v        P   dv = P   measured   dS = P (v - Delta)   measured\n");
  double sum = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    const double P = std::exp(kScores[j] - lse), dS = P * (kValues[j] - delta);
    sum += dS;
    fmt::print("{:>3} {:>3} {:>3} {:>8.4f} {:>8.4f} {:>10.4f} {:>20.4f} {:>10.4f}\n", j, kScores[j],
               kValues[j], P, P, slope(false, j), dS, slope(true, j));
  }
  fmt::print("sum of all dS: {:.4f}\n", std::abs(sum));
}

void print_block() {
  // [block]
  const double lse = lse_of(kScores), delta = out_of(kScores, kValues);  // of the whole row
  const std::array<double, 2> s{3, 0}, v{3, 4};                          // block B, alone
  for (std::size_t j = 0; j < 2; ++j) {
    const double P = std::exp(s[j] - lse);
    const double dS = P * (v[j] - delta);
    fmt::print("score {}   P {:.4f}   dS {:>7.4f}\n", s[j], P, dS);
  }
  // [/block]
}

// A problem whose gradients are exact: in every row the weights sum to a power of two.
constexpr Index N = 8, D = 8, P = 4;

/// Keys k_j = e_j + e_(j+1), and queries whose scores against them are 0, 0, 1, ..., 6 in some
/// rotation: 2^0 + 2^0 + 2^1 + ... + 2^6 = 2^7.
template <class Real>
struct Owned {
  std::vector<Real> q, k, v, dout;

  Owned() : q(N * D), k(N * D), v(N * D), dout(N * D) {
    constexpr std::array<int, 8> scores{0, 3, 1, 6, 0, 4, 2, 5};
    for (Index i = 0; i < N; ++i) {
      for (Index j = D - 1; j >= 0; --j) {
        const Real score(scores[(i + 3 * j) % N]);
        q[i * D + j] = j == D - 1 ? score : score - q[i * D + j + 1];
        k[i * D + j] = Real(j == i || j == i + 1);
        v[i * D + j] = Real(int((i * 5 + j * 3) % 7) - 3);
        dout[i * D + j] = Real(int((i * 3 + j * 5) % 5) - 2);
      }
    }
  }
  Problem<Real> problem() const {
    const auto view = [](const std::vector<Real>& x) { return row_major<Real>(x, {1, 1, N, D}); };
    return {.queries = N,
            .keys = N,
            .head_dim = D,
            .value_dim = D,
            .q = view(q),
            .k = view(k),
            .v = view(v),
            .scale = Real(1)};
  }
  Upstream<Real> upstream() const { return {row_major<Real>(dout, {1, 1, N, D}), {}}; }
};
const Owned<float> kRounded;
const Owned<Exact> kExact;

/// The events of a whole run, cut where the backward pass begins.
std::pair<Trace, Trace> traces(Index ranks) {
  Trace trace;
  ring_attention_backward(kRounded.problem(), kRounded.upstream(),
                          {ranks, Layout::contiguous, Direction::down}, trace);
  const auto last = std::find_if(trace.rbegin(), trace.rend(), [](const TraceEvent& event) {
    return event.action == Action::compute;
  });
  return {Trace(trace.begin(), last.base()), Trace(last.base(), trace.end())};
}
Trace backward_trace(Index ranks) { return traces(ranks).second; }

/// How often rank 0 did this.
Index count_of(const Trace& trace, Action action) {
  return std::count_if(trace.begin(), trace.end(), [&](const TraceEvent& event) {
    return event.rank == 0 && event.action == action;
  });
}

void print_trace() {
  for (const TraceEvent& event : backward_trace(P)) {
    if (event.rank != 1) continue;
    fmt::print("step {}  {:<14} block {}", event.step, name_of(event.action), event.block);
    if (event.peer >= 0) fmt::print("  rank {}, {} bytes", event.peer, event.bytes);
    fmt::print("\n");
  }
}

void print_journey() {
  fmt::print("the gradient of block 2\n");
  for (const TraceEvent& event : backward_trace(P)) {
    if (event.block != 2) continue;
    if (event.action == Action::gradient) {
      fmt::print("step {}: rank {} adds its part", event.step, event.rank);
    }
    if (event.action == Action::post_gradient) fmt::print(" and sends it to rank {}\n", event.peer);
  }
}

void print_hops() {
  fmt::print("ranks   forward: blocks   backward: blocks   gradients\n");
  for (const Index ranks : {1, 2, 4, 8}) {
    const auto [forward, backward] = traces(ranks);
    fmt::print("{:>5} {:>17} {:>18} {:>11}\n", ranks, count_of(forward, Action::post),
               count_of(backward, Action::post), count_of(backward, Action::post_gradient));
  }
}

/// How many numbers of all gradients are not, bit for bit, those of the definition.
template <class Real>
Index differing(const Owned<Real>& owned, Index ranks) {
  Trace trace;
  const Gradients<Real> dense = dense_backward(owned.problem(), owned.upstream());
  const Gradients<Real> ring =
      ring_attention_backward(owned.problem(), owned.upstream(),
                              {ranks, Layout::contiguous, Direction::down}, trace)
          .gradients;
  Index count = 0;
  const auto compare = [&](const std::vector<Real>& a, const std::vector<Real>& b) {
    for (std::size_t n = 0; n < a.size(); ++n) count += a[n] == b[n] ? 0 : 1;
  };
  compare(ring.dq, dense.dq);
  compare(ring.dk, dense.dk);
  compare(ring.dv, dense.dv);
  return count;
}

void print_same() {
  fmt::print("numbers of dq, dk and dv, of {}, that differ from the definition\n", 3 * N * D);
  fmt::print("ranks   binary32   without rounding\n");
  for (const Index ranks : {1, 2, 3, 4, 8}) {
    fmt::print("{:>5} {:>10} {:>18}\n", ranks, differing(kRounded, ranks),
               differing(kExact, ranks));
  }
}

/// Rank against step: whose gradient is there, and how many parts it has collected.
void print_figure() {
  constexpr double kLeft = 76, kTop = 64, kCell = 112, kRow = 44;
  Svg svg(kLeft + double(P) * kCell + 20, kTop + double(P + 1) * kRow + 12,
          "Where the gradient of each block is at each step, and how many parts it has");
  svg.text(12, 22, "Gradient of which block, and parts collected", "start", 14);
  for (Index r = 0; r < P; ++r) {
    svg.text(kLeft + (double(r) + 0.5) * kCell, kTop - 10, fmt::format("rank {}", r));
  }
  const auto cell = [&](Index row, Index rank, Index block, Index parts) {
    const double x = kLeft + double(rank) * kCell, y = kTop + double(row) * kRow;
    svg.rectangle(x + 3, y + 3, kCell - 6, kRow - 6, colour(block, P));
    svg.text(x + kCell / 2, y + 19, fmt::format("block {}", block), "middle", 12);
    for (Index part = 0; part < P; ++part) {
      const double left = x + kCell / 2 + (double(part) - double(P) / 2) * 16 + 2;
      svg.rectangle(left, y + 25, 12, 9, part < parts ? deep_colour(block, P) : "white", "#555");
    }
  };
  for (const TraceEvent& event : backward_trace(P)) {
    if (event.action == Action::gradient) {
      cell(event.step, event.rank, event.block, event.step + 1);
    }
    if (event.action == Action::wait_gradient && event.step == P - 1) {
      cell(P, event.rank, event.block, P);
    }
  }
  for (Index t = 0; t <= P; ++t) {
    svg.text(12, kTop + (double(t) + 0.6) * kRow, t < P ? fmt::format("step {}", t) : "home",
             "start");
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"row", print_row},
                    {"block", print_block},
                    {"trace", print_trace},
                    {"journey", print_journey},
                    {"hops", print_hops},
                    {"same", print_same},
                    {"svg", print_figure}});
}
