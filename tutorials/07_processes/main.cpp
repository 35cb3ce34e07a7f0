// tutorial-07: processes. The ring on a network: three verbs, the order that hides a transfer, how
// many buffers it takes, and the deadlock that buffering hides. Ranks are threads here, so that a
// deadlock is reported and not waited for.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "mpi/ring_forward.hpp"
#include "mpi/simgrid/cost_model.hpp"
#include "mpi/tile_scalar.hpp"
#include "tutorials/07_processes/figure.hpp"
#include "tutorials/07_processes/schedules.hpp"
#include "tutorials/support/parts.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::tutorials;

constexpr Index kRows = 8, kWidth = 16;  // b rows a rank, D = Dv

/// What a real ring over P ranks did.
struct RingRun {
  std::vector<reference::Trace> traces;  // [P]
  std::vector<std::size_t> bytes;        // [P] of all block buffers of a rank
  int buffers = 0;
  bool own_block_is_there = true;  // at the end, on every rank
};

RingRun run_ring(Index P, mpi::OwnBlock own) {
  const Index N = P * kRows;
  std::vector<float> numbers(N * kWidth);
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = float(n * 7 % 13) / 8;
  reference::Problem<float> problem{
      .queries = N, .keys = N, .head_dim = kWidth, .value_dim = kWidth};
  problem.q = problem.k = problem.v = reference::row_major<float>(numbers, {1, 1, N, kWidth});
  RingRun run;
  run.traces.resize(P);
  run.bytes.resize(P);
  std::vector<char> intact(P);
  mpi::run_ranks(P, {.rendezvous = true, .check_buffers = true}, [&](mpi::Transport& transport) {
    const Index r = transport.rank();
    const mpi::Journeys journeys(problem, mpi::Layout::contiguous, P, mpi::Direction::down);
    const auto tile = mpi::make_scalar_tile<float>(
        mpi::deal(problem, mpi::MemorySource<float>{problem, {}}, mpi::Layout::contiguous, P, r));
    mpi::BlockBuffers buffers(mpi::largest_block(*tile, P), own);
    mpi::ring_forward(transport, journeys, *tile, buffers, run.traces[r]);
    run.bytes[r] = buffers.count() * mpi::largest_block(*tile, P);
    // Keys r b to (r + 1) b of the problem, if they are still where they began.
    const float* first = numbers.data() + r * kRows * kWidth;
    intact[r] = std::memcmp(buffers.at(0).first(1).data(), first, kRows * kWidth * 4) == 0;
    if (r == 0) run.buffers = buffers.count();
  });
  run.own_block_is_there = std::all_of(intact.begin(), intact.end(), [](char i) { return i != 0; });
  return run;
}

void print_order() {
  const RingRun run = run_ring(4, mpi::OwnBlock::given);
  for (const reference::TraceEvent& event : run.traces[1]) {
    fmt::print("step {}  {:<8} block {}", event.step, name_of(event.action), event.block);
    if (event.action == reference::Action::post) fmt::print("  to rank {}", event.peer);
    if (event.action == reference::Action::wait) fmt::print("  from rank {}", event.peer);
    fmt::print("\n");
  }
}

void print_buffers() {
  fmt::print("{} rows a rank, D = {}, a block is {} bytes\n", kRows, kWidth,
             2 * kRows * kWidth * 4);
  fmt::print("own block   ranks  tokens  buffers  bytes of a rank  own block still there\n");
  for (const mpi::OwnBlock own : {mpi::OwnBlock::given, mpi::OwnBlock::kept}) {
    for (const Index P : {2, 4, 8, 16}) {
      const RingRun run = run_ring(P, own);
      fmt::print("{:<10} {:>6} {:>7} {:>8} {:>16}  {}\n",
                 own == mpi::OwnBlock::given ? "given away" : "kept", P, P * kRows, run.buffers,
                 *std::max_element(run.bytes.begin(), run.bytes.end()),
                 run.own_block_is_there ? "yes" : "no");
    }
  }
}

/// From how many rows on a step computes no shorter than it transfers, which costs this latency.
double rows_that_hide(double latency) {
  const double compute = compute_seconds(kMachine, shape_of(1), 1);                    // a pair
  const double transfer = transfer_seconds(kMachine, shape_of(1)) - kMachine.latency;  // a row
  return (transfer + std::sqrt(transfer * transfer + 4 * compute * latency)) / (2 * compute);
}

void print_overlap() {
  fmt::print("{:.0e} operations a second; links of {:.0e} bytes a second, {} us latency\n",
             kMachine.flops, kMachine.bandwidth, 1e6 * kMachine.latency);
  fmt::print("{} ranks, one head, D = {}; milliseconds\n", kRanks, shape_of(1).width);
  fmt::print("rows b   computes  transfers   one after the other   overlapped   saved\n");
  for (const Index b : {100, 200, 400, 800}) {
    const mpi::Shape shape = shape_of(b);
    const double apart = full_ring_seconds(kMachine, shape, kRanks, false);
    const double together = full_ring_seconds(kMachine, shape, kRanks, true);
    fmt::print("{:>6} {:>10.4f} {:>10.4f} {:>21.3f} {:>12.3f} {:>5.0f} %\n", b,
               1e3 * compute_seconds(kMachine, shape, b * b),
               1e3 * transfer_seconds(kMachine, shape), 1e3 * apart, 1e3 * together,
               100 * (1 - together / apart));
  }
  fmt::print("transfers hide from {:.1f} rows on without latency, from {:.1f} rows on with it\n",
             rows_that_hide(0), rows_that_hide(kMachine.latency));
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"ring", print_ring},
                    {"order", print_order},
                    {"overlap", print_overlap},
                    {"buffers", print_buffers},
                    {"misuse", print_misuse},
                    {"deadlock", print_deadlock},
                    {"death", print_death},
                    {"svg", print_figure}});
}
