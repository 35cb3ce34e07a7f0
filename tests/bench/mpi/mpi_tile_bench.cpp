// How fast the vector tile is: one rank, one thread, processor seconds, best of a few rounds.
//   mpi_tile_bench [N...]     default 1024 2048
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "mpi/simd_data.hpp"
#include "mpi/transport_local.hpp"
#include "tests/bench/mpi/tile_pass.hpp"

using namespace ringproof;
using namespace ringproof::mpi;

namespace {

constexpr int kRounds = 5;
constexpr Index kHeads = 2;

/// Shortest of some rounds of `work`.
double best_seconds(const auto& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    work();
    best = std::min(best, seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin);
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

/// Processor seconds of one pass.
double pass_seconds(const BenchProblem& bench, bool backward, std::optional<Sixteen> wire) {
  double best = 1e30;
  run_ranks(1, {}, [&](Transport& transport) {
    const PassOptions options{.backward = backward, .wire = wire};
    for (int round = 0; round < kRounds; ++round) {
      best = std::min(best, timed_pass(transport, bench, options, [] {}).seconds);
    }
  });
  return best;
}

void measure(Index rows, Index width) {
  const Numbers numbers = draw(rows, width);
  const double ceiling = product_rate(width);
  for (const bool causal : {false, true}) {
    const BenchProblem bench{kHeads,    rows,      width,     causal,
                             numbers.q, numbers.k, numbers.v, numbers.dout};
    const double product = bench.product();
    const double forward = 2 * product / pass_seconds(bench, false, {});
    const double both = 7 * product / pass_seconds(bench, true, {});
    const double sixteen = 2 * product / pass_seconds(bench, false, Sixteen::bf16);
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
