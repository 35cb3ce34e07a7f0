// The ring of mpi/ on a simulated cluster of hundreds of machines: the same transport, journeys and
// loop as between real processes, compiled against SimGrid's MPI. Only the arithmetic is replaced:
// a tile that counts the visible pairs of a block and tells the simulator how long they take.
//   smpirun ... ringproof-mpi-scale LAYOUT MASK ROWS WIDTH FLOPS BANDWIDTH LATENCY OVERLAP
// LAYOUT contiguous|zigzag|striped, MASK full|causal, OVERLAP on|off. Prints one line of JSON.
#include <mpi.h>
#include <smpi/smpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi/ring_forward.hpp"
#include "mpi/simgrid/cost_model.hpp"
#include "mpi/transport_mpi.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::mpi;
using reference::Direction;

/// Numbers of a block are never looked at.
class CountingTile final : public Tile<float> {
 public:
  CountingTile(RankProblem<float> mine, const Shape& shape)
      : mine_(std::move(mine)), shape_(shape) {}

  const RankProblem<float>& mine() const override { return mine_; }
  std::size_t block_bytes(Index) const override {
    return static_cast<std::size_t>(mpi::block_bytes(shape_));
  }
  void pack_block(std::span<std::byte>) override {}
  Index absorb(Index origin, std::span<const std::byte>) override {
    const Index pairs =
        pairs_between(mine_.keys, {.causal = mine_.problem.causal}, mine_.rank, origin);
    smpi_execute_flops(4.0 * static_cast<double>(shape_.heads * shape_.width * pairs));
    return pairs;
  }
  reference::ShardAnswer<float> finish() override { return {}; }
  void begin_backward(const reference::ShardAnswer<float>&) override {}
  void gradient(Index, std::span<const std::byte>, std::span<float>) override {}
  reference::QueryGradient<float> finish_backward() override { return {}; }

 private:
  RankProblem<float> mine_;
  Shape shape_;
};

/// Waits for a transfer before it lets anybody compute: what a ring without overlap does.
class WaitingTransport final : public MpiTransport {
 public:
  using MpiTransport::MpiTransport;

 protected:
  void start(Batch batch, const std::vector<Transfer>& transfers) override {
    MpiTransport::start(batch, transfers);
    MpiTransport::finish(batch, transfers);
  }
  void finish(Batch, const std::vector<Transfer>&) override {}
};

struct Arguments {
  Layout layout;
  bool causal, overlap;
  Shape shape;
  Machine machine;
};

Arguments read(char** argv) {
  const std::string layout = argv[1];
  Arguments a{};
  a.layout = layout == "zigzag"    ? Layout::zigzag
             : layout == "striped" ? Layout::striped
                                   : Layout::contiguous;
  a.causal = std::string(argv[2]) == "causal";
  a.shape = {.rows_per_rank = std::atol(argv[3]), .width = std::atol(argv[4])};
  a.machine = {std::atof(argv[5]), std::atof(argv[6]), std::atof(argv[7])};
  a.overlap = std::string(argv[8]) == "on";
  return a;
}

void run(Transport& transport, const Arguments& a) {
  const Index P = transport.size(), r = transport.rank(), rows = P * a.shape.rows_per_rank;
  reference::Problem<float> problem{.queries = rows,
                                    .keys = rows,
                                    .head_dim = a.shape.width,
                                    .value_dim = a.shape.width,
                                    .causal = a.causal};
  const Journeys journeys(problem, a.layout, P, Direction::down);
  RankProblem<float> mine;
  mine.problem = problem;
  mine.rank = r;
  mine.keys = {a.layout, rows, P};
  CountingTile tile(std::move(mine), a.shape);
  BlockBuffers buffers(largest_block(tile, P), OwnBlock::given);
  reference::Trace trace;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  ring_forward(transport, journeys, tile, buffers, trace);
  const double mine_seconds = MPI_Wtime() - begin;

  double seconds = 0;
  MPI_Reduce(&mine_seconds, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  long bytes = 0, least = 0, most = 0;
  for (const auto& event : trace) {
    bytes += event.action == reference::Action::post ? event.bytes : 0;
  }
  MPI_Reduce(&bytes, &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&bytes, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (r != 0) return;
  const reference::Workload work =
      workload({a.layout, rows, P}, {.causal = a.causal}, Direction::down);
  const double model =
      ring_seconds(a.machine, a.shape, work, Direction::down, a.overlap,
                   [&](Index block, Index step) { return journeys.block_moves(block, step); });
  std::printf(
      "{\"ranks\": %ld, \"seconds\": %.9g, \"model\": %.9g, \"formula\": %.9g, "
      "\"least_bytes\": %ld, \"most_bytes\": %ld}\n",
      static_cast<long>(P), seconds, model, full_ring_seconds(a.machine, a.shape, P, a.overlap),
      least, most);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 9) {
    std::fprintf(stderr, "ringproof-mpi-scale: eight arguments, see scale_main.cpp\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const Arguments arguments = read(argv);
  if (arguments.overlap) {
    MpiTransport transport(MPI_COMM_WORLD, {});
    run(transport, arguments);
  } else {
    WaitingTransport transport(MPI_COMM_WORLD, {});
    run(transport, arguments);
  }
  MPI_Finalize();
  return 0;
}
