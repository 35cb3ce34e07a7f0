// The whole ring against dense softmax in exact arithmetic, over random problems.
#include "reference/ring.hpp"

#include "reference/dense.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Description;
using test::Exact;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const Direction kDirections[] = {Direction::down, Direction::up};

}  // namespace

TEST_CASE(
    "C11: in exact arithmetic the ring equals dense softmax, for every layout, P and direction") {
  test::property("ring == dense, out and lse, bit for bit", [](const Description& description) {
    const auto owned = test::build<Exact>(description);
    const Answer<Exact> dense = dense_attention(owned.problem);
    for (const Layout layout : kLayouts) {
      for (const Direction direction : kDirections) {
        for (Index P = 1; P <= 5; ++P) {
          Trace trace;
          const auto answer = ring_attention(owned.problem, RingPlan{P, layout, direction}, trace);
          RC_ASSERT(answer.out == dense.out);
          RC_ASSERT(answer.lse == dense.lse);
        }
      }
    }
  });
}
