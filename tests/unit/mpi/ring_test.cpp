// The rings of mpi/ with the scalar tile, ranks being threads, against reference/: bit for bit, on
// every semantics, layout, direction and number of ranks, and whatever the network's mood.
#include "tests/support/property.hpp"
#include "tests/unit/mpi/local_ring.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using reference::Action;
using reference::Direction;
using reference::Layout;
using reference::Problem;
using reference::RingPlan;
using test::Description;
using test::Index;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const Direction kDirections[] = {Direction::down, Direction::up};

template <class Real>
test::RingRun<Real> run(const Problem<Real>& problem, const reference::Upstream<Real>* upstream,
                        const RingPlan& plan, const mpi::DebugOptions& debug = {}) {
  return test::run_local_ring<Real>(problem, upstream, plan, mpi::make_scalar_tile<Real>, debug);
}

template <class Real>
struct DrawnUpstream {
  std::vector<Real> dout, dlse;
  reference::Upstream<Real> views;

  DrawnUpstream(const Problem<Real>& p, unsigned seed) {
    test::Draw<Real> draw{std::mt19937_64(seed)};
    dout = draw.numbers(p.batches * p.heads * p.queries * p.value_dim, 3);
    dlse = draw.numbers(p.batches * p.heads * p.queries, 3);
    views.dout = reference::row_major<Real>(dout, {p.batches, p.heads, p.queries, p.value_dim});
    views.dlse = reference::row_major<Real>(dlse, {p.batches, p.heads, p.queries, 1});
  }
};

}  // namespace

TEST_CASE("C19: with the scalar tile the ring of threads equals the reference bit for bit") {
  test::property("forward and backward, float", [](Description description) {
    // A tensor without elements would look absent.
    description.queries = std::max<Index>(description.queries, 1);
    description.keys = std::max<Index>(description.keys, 1);
    const auto owned = test::build<float>(description);
    Problem<float> problem = owned.problem;
    if (description.seed % 3 == 0) problem.softcap = 1.5f;
    const DrawnUpstream<float> upstream(problem, description.seed);
    const auto debug =
        mpi::DebugOptions{.rendezvous = description.seed % 2 == 0, .check_buffers = true};
    const Index P = *rc::gen::inRange<Index>(1, 9);
    const Direction direction = *rc::gen::element(Direction::down, Direction::up);
    for (const Layout layout : kLayouts) {
      const RingPlan plan{P, layout, direction};
      reference::Trace trace;
      const auto expected =
          reference::ring_attention_backward(problem, upstream.views, plan, trace);
      const auto both = run(problem, &upstream.views, plan, debug);
      RC_ASSERT(test::same_bits(both.answer, expected.answer));
      RC_ASSERT(test::same_bits(both.gradients, expected.gradients));
      const auto forward = run<float>(problem, nullptr, plan, debug);
      RC_ASSERT(test::same_bits(forward.answer, expected.answer));
    }
  });
}

TEST_CASE("C19: so it does in binary64") {
  test::property("forward and backward, double", [](Description description) {
    description.queries = std::max<Index>(description.queries, 1);
    description.keys = std::max<Index>(description.keys, 1);
    const auto owned = test::build<double>(description);
    const DrawnUpstream<double> upstream(owned.problem, description.seed);
    const RingPlan plan{*rc::gen::inRange<Index>(1, 7), Layout::zigzag, Direction::down};
    reference::Trace trace;
    const auto expected =
        reference::ring_attention_backward(owned.problem, upstream.views, plan, trace);
    const auto both = run(owned.problem, &upstream.views, plan);
    RC_ASSERT(test::same_bits(both.answer, expected.answer));
    RC_ASSERT(test::same_bits(both.gradients, expected.gradients));
  });
}

TEST_CASE("C8: rendezvous sends and random delays change nothing and block nothing, P = 1 ... 16") {
  Description description;
  description.queries = description.keys = 37, description.kv_heads = 2;
  description.head_dim = 3, description.value_dim = 2;
  for (const bool causal : {false, true}) {
    description.causal = causal;
    const auto owned = test::build<float>(description);
    const DrawnUpstream<float> upstream(owned.problem, 1);
    for (const Layout layout : kLayouts) {
      for (const Direction direction : kDirections) {
        for (const Index P : {1, 2, 3, 4, 5, 7, 8, 16}) {
          const RingPlan plan{P, layout, direction};
          reference::Trace trace;
          const auto expected =
              reference::ring_attention_backward(owned.problem, upstream.views, plan, trace);
          const unsigned seed = P == 5 || P == 8 ? 17 : 0;
          const auto got = run(owned.problem, &upstream.views, plan,
                               {.rendezvous = true, .check_buffers = true, .delay_seed = seed});
          CHECK(test::same_bits(got.answer, expected.answer));
          CHECK(test::same_bits(got.gradients, expected.gradients));
        }
      }
    }
  }
}

TEST_CASE("C7: bytes and order of the real ring are those of the schedule, on a full mask") {
  Description description;
  description.queries = description.keys = 21, description.kv_heads = 2;
  description.head_dim = 3, description.value_dim = 2;
  const auto owned = test::build<float>(description);
  const DrawnUpstream<float> upstream(owned.problem, 1);
  for (const Layout layout : kLayouts) {
    for (const Direction direction : kDirections) {
      for (Index P = 1; P <= 8; ++P) {
        const RingPlan plan{P, layout, direction};
        const auto forward = run<float>(owned.problem, nullptr, plan);
        reference::Trace trace;
        reference::ring_attention(owned.problem, plan, trace);
        for (Index r = 0; r < P; ++r) {
          reference::Trace expected;
          for (const auto& event : trace) {
            if (event.rank == r) expected.push_back(event);
          }
          CHECK(forward.traces[static_cast<std::size_t>(r)] == expected);
        }
        // Backward: the gradient of each block is posted P times, and the last time to its owner.
        const auto both = run(owned.problem, &upstream.views, plan);
        std::vector<Index> posts(static_cast<std::size_t>(P)), home(static_cast<std::size_t>(P));
        for (const auto& rank_trace : both.traces) {
          for (const auto& event : rank_trace) {
            if (event.action != Action::post_gradient) continue;
            ++posts[static_cast<std::size_t>(event.block)];
            home[static_cast<std::size_t>(event.block)] += event.peer == event.block;
            CHECK(event.bytes == reference::row_count({layout, 21, P}, event.block) * 2 * (3 + 2) *
                                     Index{sizeof(float)});
          }
        }
        for (Index block = 0; block < P; ++block) {
          CHECK(posts[static_cast<std::size_t>(block)] == (P == 1 ? 0 : P));
          CHECK(home[static_cast<std::size_t>(block)] == (P == 1 ? 0 : 1));
        }
      }
    }
  }
}

TEST_CASE(
    "C17: a contiguous causal ring computes with no block a mask makes empty, and sends none") {
  Description description;
  description.queries = description.keys = 24, description.causal = true;
  const auto owned = test::build<float>(description);
  const Index P = 6;
  const auto got = run<float>(owned.problem, nullptr, {P, Layout::contiguous, Direction::down});
  Index computed = 0, posted = 0, pairs = 0;
  for (const auto& trace : got.traces) {
    for (const auto& event : trace) {
      computed += event.action == Action::compute;
      posted += event.action == Action::post;
      pairs += event.pairs;
      if (event.action == Action::compute) CHECK(event.pairs > 0);
    }
  }
  CHECK(computed == P * (P + 1) / 2);
  CHECK(posted == P * (P - 1) / 2);
  CHECK(pairs == 24 * 25 / 2);
}
