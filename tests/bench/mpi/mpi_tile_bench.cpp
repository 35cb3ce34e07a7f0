// How fast the vector tile is: one rank, one thread, processor seconds, best of a few rounds.
//   mpi_tile_bench [N...]     default 1024 2048
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "mpi/ring_backward.hpp"
#include "mpi/simd_data.hpp"
#include "mpi/tile_simd.hpp"
#include "mpi/transport_local.hpp"

using namespace ringproof;
using namespace ringproof::mpi;

namespace {

constexpr int kRounds = 5;
constexpr Index kHeads = 2;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Shortest of some rounds of `work`.
double best_seconds(const auto& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - begin);
  }
  return best;
}

/// Operations per second of the product routine alone, on one tile of keys and one of queries.
double product_rate(Index depth) {
  AlignedFloats a(kKeys * depth, 1.0f), b(depth * kQueries, 1.0f), c(kKeys * kQueries);
  constexpr int kRepeats = 2000;
  const double seconds = best_seconds([&] {
    for (int n = 0; n < kRepeats; ++n) {
      multiply({.a = {a.data(), depth, 1},
                .b = {b.data(), kQueries},
                .c = {c.data(), kQueries},
                .rows = kKeys,
                .depth = depth,
                .columns = kQueries},
               Into::replace);
    }
  });
  return 2.0 * kRepeats * kKeys * kQueries * static_cast<double>(depth) / seconds;
}

struct Numbers {
  std::vector<float> q, k, v, dout;
};

Numbers draw(Index rows, Index width) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Numbers numbers;
  for (auto* list : {&numbers.q, &numbers.k, &numbers.v, &numbers.dout}) {
    for (Index n = 0; n < kHeads * rows * width; ++n) list->push_back(normal(random));
  }
  return numbers;
}

/// Processor seconds of one pass, without dealing the problem out.
double pass_seconds(const reference::Problem<float>& problem,
                    const reference::Upstream<float>& upstream, bool backward,
                    std::optional<Sixteen> wire) {
  double best = 1e30;
  run_ranks(1, {}, [&](Transport& transport) {
    const Journeys journeys(problem, Layout::contiguous, 1, reference::Direction::down);
    for (int round = 0; round < kRounds; ++round) {
      const auto tile = make_simd_tile(
          deal(problem, MemorySource<float>{problem, upstream}, Layout::contiguous, 1, 0), 1, wire);
      BlockBuffers buffers(largest_block(*tile, 1), OwnBlock::kept);
      reference::Trace trace;
      const double begin = processor_seconds();
      const auto answer = ring_forward(transport, journeys, *tile, buffers, trace);
      if (backward) ring_backward(transport, journeys, *tile, answer, buffers, trace);
      best = std::min(best, processor_seconds() - begin);
    }
  });
  return best;
}

void measure(Index rows, Index width) {
  const Numbers numbers = draw(rows, width);
  const double ceiling = product_rate(width);
  reference::Problem<float> problem{.heads = kHeads,
                                    .kv_heads = kHeads,
                                    .queries = rows,
                                    .keys = rows,
                                    .head_dim = width,
                                    .value_dim = width};
  const std::array<Index, 4> size{1, kHeads, rows, width};
  problem.q = reference::row_major<float>(numbers.q, size);
  problem.k = reference::row_major<float>(numbers.k, size);
  problem.v = reference::row_major<float>(numbers.v, size);
  problem.scale = reference::Number<float>::inverse_square_root(width);
  const reference::Upstream<float> upstream{reference::row_major<float>(numbers.dout, size), {}};
  for (const bool causal : {false, true}) {
    problem.causal = causal;
    const double pairs =
        static_cast<double>(kHeads) *
        (causal ? 0.5 * static_cast<double>(rows * (rows + 1)) : static_cast<double>(rows * rows));
    const double product = 2.0 * pairs * static_cast<double>(width);
    const double forward = 2 * product / pass_seconds(problem, upstream, false, {});
    const double both = 7 * product / pass_seconds(problem, upstream, true, {});
    const double sixteen = 2 * product / pass_seconds(problem, upstream, false, Sixteen::bf16);
    std::printf(
        "N %5ld d %3ld %-6s  forward %6.1f GF/s (%.2f of the product)  with bf16 blocks "
        "%6.1f  forward and backward %6.1f (%.2f)\n",
        static_cast<long>(rows), static_cast<long>(width), causal ? "causal" : "full",
        forward * 1e-9, forward / ceiling, sixteen * 1e-9, both * 1e-9, both / ceiling);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("target %s, product routine d 64: %.1f GF/s\n", simd_target(),
              product_rate(64) * 1e-9);
  std::vector<Index> sizes;
  for (int n = 1; n < argc; ++n) sizes.push_back(std::atol(argv[n]));
  if (sizes.empty()) sizes = {1024, 2048};
  for (const Index rows : sizes) {
    for (const Index width : {64, 128}) measure(rows, width);
  }
  return 0;
}
