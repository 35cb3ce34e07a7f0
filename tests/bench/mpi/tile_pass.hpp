// One rank's ring, timed: what the benchmarks of the vector tile share. Reading the rank's rows
// from where they lie is not part of the time; everything the tile does with them is.
#pragma once

#include <ctime>
#include <vector>

#include "mpi/ring_backward.hpp"
#include "mpi/tile_simd.hpp"

namespace ringproof::mpi {

inline double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// H heads of N queries and keys; numbers are [H, N, D] each.
struct BenchProblem {
  Index heads = 1, rows = 1, width = 1;
  bool causal = false;
  const std::vector<float>&q, &k, &v, &dout;

  reference::Problem<float> problem() const {
    reference::Problem<float> problem{.heads = heads,
                                      .kv_heads = heads,
                                      .queries = rows,
                                      .keys = rows,
                                      .head_dim = width,
                                      .value_dim = width,
                                      .causal = causal};
    const std::array<Index, 4> size{1, heads, rows, width};
    problem.q = reference::row_major<float>(q, size);
    problem.k = reference::row_major<float>(k, size);
    problem.v = reference::row_major<float>(v, size);
    problem.scale = reference::Number<float>::inverse_square_root(width);
    return problem;
  }
  reference::Upstream<float> upstream() const {
    return {reference::row_major<float>(dout, {1, heads, rows, width}), {}};
  }
  /// Floating-point operations of one of the products of a pass.
  double product() const {
    const auto n = static_cast<double>(rows);
    return 2.0 * static_cast<double>(heads * width) * (causal ? n * (n + 1) / 2 : n * n);
  }
};

struct PassOptions {
  Layout layout = Layout::contiguous;
  bool backward = false;
  int threads = 1;
  std::optional<Sixteen> wire{};
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
};

struct PassResult {
  double seconds = 0;
  reference::ShardAnswer<float> answer;
  RankGradients<float> gradients;
};

/// This rank's pass. `start` is called when the rank is ready to begin.
inline PassResult timed_pass(Transport& transport, const BenchProblem& bench,
                             const PassOptions& options, const auto& start) {
  const reference::Problem<float> problem = bench.problem();
  const Index P = transport.size();
  const Journeys journeys(problem, options.layout, P, reference::Direction::down);
  auto mine = deal(problem, MemorySource<float>{problem, bench.upstream()}, options.layout, P,
                   transport.rank());
  reference::Trace trace;
  PassResult result;
  start();
  const double begin = seconds_of(options.clock);
  const auto tile = make_simd_tile(std::move(mine), options.threads, options.wire);
  BlockBuffers buffers(largest_block(*tile, P),
                       options.backward ? OwnBlock::kept : OwnBlock::given);
  result.answer = ring_forward(transport, journeys, *tile, buffers, trace);
  if (options.backward) {
    result.gradients = ring_backward(transport, journeys, *tile, result.answer, buffers, trace);
  }
  result.seconds = seconds_of(options.clock) - begin;
  return result;
}

}  // namespace ringproof::mpi
