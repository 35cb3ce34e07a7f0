// tutorial-03: the ring, on paper and in one process: who owns what, who holds what when, what one
// rank does, that every query meets every key once, and that the answer is that of dense attention.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/dense.hpp"
#include "reference/ring.hpp"
#include "tutorials/support/exact.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

// [problem]
constexpr Index N = 8, D = 2, P = 4;  // tokens, components, ranks
const std::vector<int> q{1, 0, 0, 1, 2, -1, 1, 1, -1, 2, 0, 2, 3, 0, 1, -1};
const std::vector<int> k{1, 1, 2, 0, -1, 1, 0, 2, 1, -1, 0, 0, 2, 1, -2, 1};
const std::vector<int> v{1, 0, 2, 1, 3, -1, 4, 2, 5, 0, 6, 1, 7, -2, 8, 1};
// [/problem]

/// The tensors in any number type, and the problem that looks at them.
template <class Real>
struct Owned {
  std::vector<Real> q, k, v;  // [N, D]
  Real scale;

  explicit Owned(Real scale_of_scores) : scale(scale_of_scores) {
    for (const int x : ::q) q.push_back(Real(x));
    for (const int x : ::k) k.push_back(Real(x));
    for (const int x : ::v) v.push_back(Real(x));
  }
  Problem<Real> problem() const {
    return {.queries = N,
            .keys = N,
            .head_dim = D,
            .value_dim = D,
            .q = row_major<Real>(q, {1, 1, N, D}),
            .k = row_major<Real>(k, {1, 1, N, D}),
            .v = row_major<Real>(v, {1, 1, N, D}),
            .scale = scale};
  }
};

const Owned<float> kRounded(1 / std::numbers::sqrt2_v<float>);
const Owned<Exact> kExact(Exact(1));  // whole scores

Trace trace_of(Index ranks) {
  Trace trace;
  ring_attention(kRounded.problem(), {ranks, Layout::contiguous, Direction::down}, trace);
  return trace;
}

void print_shards() {
  // [shards]
  const Sharding sharding{Layout::contiguous, N, P};
  for (Index r = 0; r < P; ++r) {
    const std::vector<Index> rows = global_rows(sharding, r);
    fmt::print("rank {} owns rows {} to {}\n", r, rows.front(), rows.back());
  }
  // [/shards]
}

void print_schedule() {
  fmt::print("         rank 0   rank 1   rank 2   rank 3\n");
  for (Index t = 0; t < step_count(P); ++t) {
    fmt::print("step {}", t);
    for (Index r = 0; r < P; ++r) {
      fmt::print("{:>9}", fmt::format("block {}", block_at(t, r, P, Direction::down)));
    }
    fmt::print("\n");
  }
}

/// What one rank did, from the trace that the running ring wrote.
void print_trace() {
  for (const TraceEvent& event : trace_of(P)) {
    if (event.rank != 1) continue;
    fmt::print("step {}  {:<8} block {}", event.step, name_of(event.action), event.block);
    if (event.action == Action::post) fmt::print("  to rank {}, {} bytes", event.peer, event.bytes);
    if (event.action == Action::wait) {
      fmt::print("  from rank {}, {} bytes", event.peer, event.bytes);
    }
    if (event.action == Action::compute) fmt::print("  {} pairs", event.pairs);
    fmt::print("\n");
  }
}

/// The step at which query i met key j, and how often they met.
struct Meetings {
  std::vector<Index> step = std::vector<Index>(N * N, -1), count = std::vector<Index>(N * N, 0);
};

Meetings meetings() {
  // [meetings]
  Meetings met;
  const Sharding sharding{Layout::contiguous, N, P};
  for (const TraceEvent& event : trace_of(P)) {
    if (event.action != Action::compute) continue;
    for (const Index i : global_rows(sharding, event.rank)) {
      for (const Index j : global_rows(sharding, event.block)) {
        met.step[i * N + j] = event.step;
        met.count[i * N + j] += 1;
      }
    }
  }
  // [/meetings]
  return met;
}

void print_met() {
  const Meetings met = meetings();
  fmt::print("step at which query i meets key j\n        ");
  for (Index j = 0; j < N; ++j) fmt::print(" j={}", j);
  fmt::print("\n");
  for (Index i = 0; i < N; ++i) {
    fmt::print("   i={}  ", i);
    for (Index j = 0; j < N; ++j) fmt::print("{:>4}", met.step[i * N + j]);
    fmt::print("\n");
  }
  const auto once = std::count(met.count.begin(), met.count.end(), Index{1});
  fmt::print("pairs that met exactly once: {} of {}\n", once, N * N);
}

void print_count() {
  fmt::print("ranks   steps   blocks sent by a rank   bytes sent by a rank, least   most\n");
  for (const Index ranks : {1, 2, 4, 8}) {
    std::vector<Index> sent(ranks, 0), bytes(ranks, 0);
    Index steps = 0;
    for (const TraceEvent& event : trace_of(ranks)) {
      steps = std::max(steps, event.step + 1);
      if (event.action != Action::post) continue;
      sent[event.rank] += 1;
      bytes[event.rank] += event.bytes;
    }
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    fmt::print("{:>5} {:>7} {:>23} {:>29} {:>6}\n", ranks, steps, sent[0], *least, *most);
  }
}

/// How many numbers of the ring's output are not, bit for bit, those of dense attention.
template <class Real>
Index differing(const Owned<Real>& owned, Index ranks, Direction direction) {
  Trace trace;
  const std::vector<Real> dense = dense_attention(owned.problem()).out;
  const std::vector<Real> ring =
      ring_attention(owned.problem(), {ranks, Layout::contiguous, direction}, trace).out;
  Index count = 0;
  for (std::size_t n = 0; n < dense.size(); ++n) count += ring[n] == dense[n] ? 0 : 1;
  return count;
}

void print_same() {
  fmt::print("numbers of the output, of {}, that differ from dense attention\n", N * D);
  fmt::print("ranks   binary32, down   binary32, up   without rounding, down   up\n");
  for (const Index ranks : {1, 2, 3, 4, 8}) {
    fmt::print("{:>5} {:>16} {:>14} {:>24} {:>4}\n", ranks,
               differing(kRounded, ranks, Direction::down),
               differing(kRounded, ranks, Direction::up), differing(kExact, ranks, Direction::down),
               differing(kExact, ranks, Direction::up));
  }
}

/// Four ranks in a circle at one step: what each holds, and where it goes.
void draw_ring(Svg& svg, double centre_x, Index step) {
  constexpr double kY = 130, kRadius = 72;
  const auto place = [&](Index rank, double radius) {
    const double angle = (double(rank) / double(P) - 0.25) * 2 * std::numbers::pi;
    return Svg::Point{centre_x + radius * std::cos(angle), kY + radius * std::sin(angle)};
  };
  svg.text(centre_x, 24, fmt::format("step {}", step), "middle", 14);
  for (Index r = 0; r < P; ++r) {
    const auto [x, y] = place(r, kRadius);
    const auto [to_x, to_y] = place(send_to(r, P, Direction::down), kRadius);
    if (transfers_after(step, P)) {
      svg.arrow(x + 0.32 * (to_x - x), y + 0.32 * (to_y - y), x + 0.7 * (to_x - x),
                y + 0.7 * (to_y - y));
    }
  }
  for (Index r = 0; r < P; ++r) {
    const auto [x, y] = place(r, kRadius);
    const Index block = block_at(step, r, P, Direction::down);
    svg.circle(x, y, 24, colour(block, P));
    svg.text(x, y - 2, fmt::format("rank {}", r), "middle", 11);
    svg.text(x, y + 13, fmt::format("block {}", block), "middle", 11);
  }
}

void print_ring_figure() {
  Svg svg(880, 238, "Four ranks in a ring: which block each holds at each of the four steps");
  for (Index t = 0; t < P; ++t) draw_ring(svg, 112 + double(t) * 218, t);
  fmt::print("{}", svg.finish());
}

void print_met_figure() {
  constexpr double kCell = 30, kLeft = 86, kTop = 62;
  Svg svg(kLeft + N * kCell + 150, kTop + N * kCell + 14,
          "Step at which each query meets each key");
  svg.text(12, 22, "Step at which query i meets key j", "start", 14);
  const Meetings met = meetings();
  for (Index n = 0; n < N; ++n) {
    svg.text(kLeft + (double(n) + 0.5) * kCell, kTop - 8, fmt::format("j={}", n), "middle", 11);
    svg.text(kLeft - 8, kTop + (double(n) + 0.65) * kCell, fmt::format("i={}", n), "end", 11);
  }
  for (Index i = 0; i < N; ++i) {
    for (Index j = 0; j < N; ++j) {
      const double x = kLeft + double(j) * kCell, y = kTop + double(i) * kCell;
      const Index step = met.step[i * N + j];
      svg.rectangle(x + 1, y + 1, kCell - 2, kCell - 2, colour(step, P));
      svg.text(x + kCell / 2, y + kCell * 0.65, fmt::format("{}", step), "middle", 12);
    }
  }
  for (Index r = 0; r < P; ++r) {
    const double y = kTop + double(r) * 2 * kCell;
    svg.text(kLeft + N * kCell + 12, y + kCell + 4, fmt::format("rows of rank {}", r), "start", 12);
    if (r > 0) svg.line(kLeft, y, kLeft + N * kCell, y);
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"shards", print_shards},
                    {"schedule", print_schedule},
                    {"trace", print_trace},
                    {"met", print_met},
                    {"count", print_count},
                    {"same", print_same},
                    {"svg-ring", print_ring_figure},
                    {"svg-met", print_met_figure}});
}
