// Who meets which block, and how far blocks and gradients travel: exhaustive on small rings.
#include "mpi/journey.hpp"

#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::mpi;
using reference::Problem;
using test::Description;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const Direction kDirections[] = {Direction::down, Direction::up};

Problem<float> causal_problem(Index rows) {
  return {.queries = rows, .keys = rows, .head_dim = 1, .value_dim = 1, .causal = true};
}

}  // namespace

TEST_CASE("C6: a rank that is told to pass over a block has no visible pair with it") {
  test::property("visible implies meets", [](const Description& description) {
    const auto owned = test::build<float>(description);
    const Problem<float>& problem = owned.problem;
    for (const Layout layout : kLayouts) {
      for (Index P = 1; P <= 5; ++P) {
        const Journeys journeys(problem, layout, P, Direction::down);
        for (Index b = 0; b < problem.batches; ++b) {
          for (Index i = 0; i < problem.queries; ++i) {
            for (Index j = 0; j < problem.keys; ++j) {
              if (!visible(problem, {b, 0, i}, j)) continue;
              const Index r = reference::owner({layout, problem.queries, P}, i);
              RC_ASSERT(journeys.meets(r, reference::owner({layout, problem.keys, P}, j)));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("C17: in a contiguous causal ring rank r meets exactly the blocks 0 ... r") {
  for (Index P = 1; P <= 9; ++P) {
    const Journeys journeys(causal_problem(3 * P), Layout::contiguous, P, Direction::down);
    for (Index r = 0; r < P; ++r) {
      for (Index block = 0; block < P; ++block) CHECK(journeys.meets(r, block) == (block <= r));
      // Block s is wanted by s, s + 1, ... P - 1: it stops there instead of going round.
      CHECK(journeys.wanted(r).first == 0);
      CHECK(journeys.wanted(r).last == P - 1 - r);
      CHECK(journeys.home_from(r) == (r == P - 1 ? -1 : P - 1));
    }
  }
}

TEST_CASE(
    "C6: a mask that sees everything sends every block P - 1 times and its gradient P times") {
  for (const Layout layout : kLayouts) {
    for (const Direction direction : kDirections) {
      for (Index P = 1; P <= 9; ++P) {
        const Problem<float> problem{
            .queries = 2 * P, .keys = 2 * P, .head_dim = 1, .value_dim = 1};
        const Journeys journeys(problem, layout, P, direction);
        for (Index block = 0; block < P; ++block) {
          Index moves = 0, gradient_moves = 0;
          for (Index t = 0; t < P; ++t) {
            CHECK(journeys.block_at(t, journeys.holder(block, t)) == block);
            moves += journeys.block_moves(block, t);
            gradient_moves += journeys.gradient_moves(block, t);
          }
          CHECK(moves == P - 1);
          CHECK(gradient_moves + (journeys.home_from(block) >= 0) == (P == 1 ? 0 : P));
        }
      }
    }
  }
}

TEST_CASE("EMPTY-RANK: a block without keys is wanted by nobody and goes nowhere") {
  const Problem<float> problem{.queries = 3, .keys = 3, .head_dim = 1, .value_dim = 1};
  const Journeys journeys(problem, Layout::contiguous, 7, Direction::down);
  Index wanted = 0;
  for (Index block = 0; block < 7; ++block) {
    wanted += !journeys.wanted(block).nobody();
    if (!journeys.wanted(block).nobody()) continue;
    CHECK(journeys.home_from(block) == -1);
    for (Index t = 0; t < 7; ++t) CHECK_FALSE(journeys.block_moves(block, t));
  }
  CHECK(wanted == 3);
}
