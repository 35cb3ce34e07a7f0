// The cost model of large rings: the recurrence against the formula, and what the formula says.
#include "mpi/simgrid/cost_model.hpp"

#include <cmath>

#include "mpi/journey.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof;
using namespace ringproof::mpi;
using reference::Direction;
using reference::Workload;

namespace {

const Machine kMachine{.flops = 0x1p40, .bandwidth = 0x1p33, .latency = 0};

Workload full_work(Index ranks, Index rows) {
  return {ranks, std::vector<Index>(static_cast<std::size_t>(ranks * ranks), rows * rows)};
}

double by_recurrence(const Shape& shape, Index ranks, bool overlap) {
  return ring_seconds(kMachine, shape, full_work(ranks, shape.rows_per_rank), Direction::down,
                      overlap, [&](Index, Index step) { return step + 1 < ranks; });
}

}  // namespace

TEST_CASE(
    "C15: on a full ring the recurrence of the cost model is the formula, for every P and b") {
  for (const bool overlap : {false, true}) {
    for (Index P = 1; P <= 12; ++P) {
      for (const Index b : {8, 64, 256, 512}) {  // powers of two: every sum is exact
        const Shape shape{.rows_per_rank = b, .width = 64};
        CHECK(by_recurrence(shape, P, overlap) == full_ring_seconds(kMachine, shape, P, overlap));
      }
    }
  }
}

TEST_CASE("C15: below b* a step lasts as long as its transfer, from b* on as its arithmetic") {
  const Shape at{.rows_per_rank = 256, .width = 64};
  CHECK(crossing_rows(kMachine, at) == 256);
  for (const Index b : {64, 128, 256, 512}) {
    const Shape shape{.rows_per_rank = b, .width = 64};
    const double compute = compute_seconds(kMachine, shape, b * b);
    const double transfer = transfer_seconds(kMachine, shape);
    CHECK((compute >= transfer) == (b >= 256));
    const double ring = full_ring_seconds(kMachine, shape, 9, true);
    CHECK(ring == 8 * (b >= 256 ? compute : transfer) + compute);
  }
}

TEST_CASE("C17: the model of a causal ring: contiguous blocks take almost twice as long") {
  const Index P = 64, b = 64;
  const Shape shape{.rows_per_rank = b, .width = 64};
  reference::Problem<float> problem{
      .queries = P * b, .keys = P * b, .head_dim = 64, .value_dim = 64, .causal = true};
  const Machine fast_links{.flops = kMachine.flops, .bandwidth = 0x1p60};
  const auto seconds = [&](Layout layout) {
    const Journeys journeys(problem, layout, P, Direction::down);
    return ring_seconds(fast_links, shape,
                        workload({layout, P * b, P}, {.causal = true}, Direction::down),
                        Direction::down, true,
                        [&](Index block, Index step) { return journeys.block_moves(block, step); });
  };
  const double gain = seconds(Layout::contiguous) / seconds(Layout::zigzag);
  CHECK(std::lround(gain * 10) >= 19);
  CHECK(seconds(Layout::striped) < seconds(Layout::contiguous));
}
