// A ring of processes against threads of one process, on one machine: the same rows, the same tile.
//   mpirun -n P mpi_ring_bench ROWS_A_RANK WIDTH THREADS ROUNDS     (ranks.py)
// Prints for every round the seconds of the slowest rank and how long threads waited for a core.
// Without arguments: one rank, 1024 rows, one thread, three rounds.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "mpi/transport_mpi.hpp"
#include "tests/bench/mpi/tile_pass.hpp"

using namespace ringproof;
using namespace ringproof::mpi;

namespace {

constexpr Index kHeads = 4;

/// Seconds that the threads of this process were ready and had no core. A thread that ended is no
/// longer counted: its share is lost, and the figure too small.
double seconds_waited() {
  double waited = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0, ready = 0;
    if (file >> ran >> ready) waited += 1e-9 * ready;
  }
  return waited;
}

double over_all(double mine, MPI_Op operation) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD);
  return all;
}

/// The transport is gone before MPI is.
void run(int argc, char** argv) {
  const auto argument = [&](int n, long otherwise) {
    return argc > n ? std::atol(argv[n]) : otherwise;
  };
  MpiTransport transport(MPI_COMM_WORLD, {});
  const Index width = argument(2, 64);
  const Index rows = argument(1, 1024) * transport.size();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers[4];
  for (auto& list : numbers) {
    for (Index n = 0; n < kHeads * rows * width; ++n) list.push_back(normal(random));
  }
  const BenchProblem bench{kHeads,     rows,       width,      false,
                           numbers[0], numbers[1], numbers[2], numbers[3]};
  PassOptions options;
  options.threads = static_cast<int>(argument(3, 1));
  options.clock = CLOCK_MONOTONIC;
  for (long round = 0; round < argument(4, 3); ++round) {
    double before = 0;
    const PassResult result = timed_pass(transport, bench, options, [&] {
      MPI_Barrier(MPI_COMM_WORLD);
      before = seconds_waited();
    });
    const double seconds = over_all(result.seconds, MPI_MAX);
    const double waited = over_all(seconds_waited() - before, MPI_SUM);
    if (transport.rank() == 0) std::printf("%.6f %.6f\n", seconds, waited);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  run(argc, argv);
  MPI_Finalize();
  return 0;
}
