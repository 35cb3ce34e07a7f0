// tutorial-04: a causal mask in a ring. How many pairs each rank has at each step under three
// layouts, how long the others wait, and what a block does to the state if it shows nothing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/balance.hpp"
#include "reference/online_softmax.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

constexpr Index P = 4, N = 32;
constexpr PositionMask kCausal{.causal = true, .window_left = -1, .window_right = -1};
struct NamedLayout {
  Layout layout;
  const char* name;
};
constexpr NamedLayout kLayouts[] = {
    {Layout::contiguous, "contiguous"}, {Layout::zigzag, "zig-zag"}, {Layout::striped, "striped"}};

Workload causal_work(Layout layout, Index rows, Index ranks) {
  return workload({layout, rows, ranks}, kCausal, Direction::down);
}

void print_blocks() {
  // [blocks]
  const Sharding sharding{Layout::contiguous, N, P};
  fmt::print("visible pairs    block 0  block 1  block 2  block 3\n");
  for (Index r = 0; r < P; ++r) {
    fmt::print("queries of rank {}", r);
    for (Index s = 0; s < P; ++s) fmt::print("{:>8} ", pairs_between(sharding, kCausal, r, s));
    fmt::print("\n");
  }
  // [/blocks]
}

void print_work(Layout layout) {
  const Workload work = causal_work(layout, N, P);
  fmt::print("pairs   rank 0  rank 1  rank 2  rank 3   busiest\n");
  for (Index t = 0; t < P; ++t) {
    fmt::print("step {}", t);
    for (Index r = 0; r < P; ++r) fmt::print("{:>8}", work.at(t, r));
    fmt::print("{:>10}\n", work.busiest(t));
  }
  fmt::print("sum   ");
  for (Index r = 0; r < P; ++r) fmt::print("{:>8}", work.of_rank(r));
  fmt::print("{:>10}\n", work.duration());
  fmt::print("busiest rank / mean {:.3f}; waiting {:.1f} % of the time\n", work.imbalance(),
             100 * work.idle_fraction());
}

void print_contiguous() { print_work(Layout::contiguous); }
void print_zigzag() { print_work(Layout::zigzag); }
void print_striped() { print_work(Layout::striped); }

void print_owners() {
  fmt::print("rank that owns each of 16 tokens\n");
  for (const auto& [layout, name] : kLayouts) {
    fmt::print("{:<11}", name);
    for (Index row = 0; row < 16; ++row) fmt::print(" {}", owner({layout, 16, P}, row));
    fmt::print("\n");
  }
}

void print_growth() {
  constexpr Index b = 64;
  fmt::print("{} tokens a rank: waiting, in % of all ranks' time\n", b);
  fmt::print("ranks   contiguous   (P-1)/(2P-1)   zig-zag   striped   striped: busiest / mean\n");
  for (const Index ranks : {2, 4, 8, 16, 64}) {
    const auto waiting = [&](Layout layout) {
      return 100 * causal_work(layout, b * ranks, ranks).idle_fraction();
    };
    fmt::print("{:>5} {:>12.1f} {:>14.1f} {:>9.1f} {:>9.1f} {:>25.4f}\n", ranks,
               waiting(Layout::contiguous), 100.0 * double(ranks - 1) / double(2 * ranks - 1),
               waiting(Layout::zigzag), waiting(Layout::striped),
               causal_work(Layout::striped, b * ranks, ranks).imbalance());
  }
}

/// One line of the table below. abs: the sign of a NaN says nothing, and processors differ in it.
void print_states(std::size_t step, const RowState<double>& guarded,
                  const RowState<double>& listed) {
  fmt::print("step {}  block {}   m {:>4}  l {:>8.6f}  o {:>8.6f}   m {:>4}  l {}  o {}\n", step,
             3 - step, guarded.m, guarded.l, guarded.o[0], listed.m, std::abs(listed.l),
             std::abs(listed.o[0]));
}

/// Query 7 of eight tokens on four ranks, of which only five are real: it belongs to rank 3, which
/// meets the blocks 3, 2, 1, 0.
void print_hidden() {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  fmt::print("                as the reference has it           as listed\n");
  // [hidden]
  const std::vector<std::vector<double>> scores{
      {kHidden, kHidden}, {1, kHidden}, {2, 0}, {3, 1}};  // blocks 3, 2, 1, 0
  const std::vector<double> values{1, 2};                 // the same in each block
  RowState<double> guarded(1), listed(1);
  for (std::size_t t = 0; t < scores.size(); ++t) {
    absorb<double>(guarded, scores[t], values);
    absorb_as_listed<double>(listed, scores[t], values);
    print_states(t, guarded, listed);
  }
  // [/hidden]
}

/// The steps of each layout on a common axis of time: what is coloured works, what is white waits.
void print_time_figure() {
  constexpr double kLeft = 76, kRow = 20, kBand = 118, kTop = 34, kScale = 2.4;
  Svg svg(660, kTop + 3 * kBand + 6, "Work and waiting of four ranks under three layouts");
  double top = kTop;
  for (const auto& [layout, name] : kLayouts) {
    const Workload work = causal_work(layout, N, P);
    svg.text(12, top - 8, fmt::format("{}: {} pairs one after another", name, work.duration()),
             "start", 14);
    double begin = kLeft;
    for (Index t = 0; t < P; ++t) {
      const double width = double(work.busiest(t)) * kScale;
      for (Index r = 0; r < P; ++r) {
        const double y = top + double(r) * kRow, done = double(work.at(t, r)) * kScale;
        if (t == 0) svg.text(kLeft - 8, y + 14, fmt::format("rank {}", r), "end", 12);
        if (done == 0) continue;
        svg.rectangle(begin, y + 2, done, kRow - 4, colour(t, P));
        svg.text(begin + done / 2, y + 14, fmt::format("{}", work.at(t, r)), "middle", 11);
      }
      begin += width;
      svg.line(begin, top, begin, top + double(P) * kRow, "#888");
    }
    top += kBand;
  }
  fmt::print("{}", svg.finish());
}

/// The mask, each visible pair in the colour of the step at which the ring meets it.
void print_mask_figure() {
  constexpr double kCell = 6, kTop = 40, kPanel = N * kCell + 28;
  Svg svg(12 + 3 * kPanel, kTop + N * kCell + 34,
          "Visible pairs of a causal mask, coloured by the step of the ring");
  for (std::size_t panel = 0; panel < 3; ++panel) {
    const auto& [layout, name] = kLayouts[panel];
    const Sharding sharding{layout, N, P};
    const double left = 12 + double(panel) * kPanel;
    svg.text(left, kTop - 12, name, "start", 14);
    for (Index i = 0; i < N; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const Index step = step_of(owner(sharding, j), owner(sharding, i), P, Direction::down);
        svg.rectangle(left + double(j) * kCell, kTop + double(i) * kCell, kCell - 0.5, kCell - 0.5,
                      deep_colour(step, P));
      }
    }
  }
  for (Index t = 0; t < P; ++t) {
    const double x = 12 + double(t) * 90, y = kTop + N * kCell + 12;
    svg.rectangle(x, y, 12, 12, deep_colour(t, P));
    svg.text(x + 18, y + 11, fmt::format("step {}", t), "start", 12);
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"blocks", print_blocks},
                    {"contiguous", print_contiguous},
                    {"owners", print_owners},
                    {"zigzag", print_zigzag},
                    {"striped", print_striped},
                    {"growth", print_growth},
                    {"hidden", print_hidden},
                    {"svg-time", print_time_figure},
                    {"svg-mask", print_mask_figure}});
}
