// The whole ring: against dense softmax in exact arithmetic over random problems, and by its trace.
#include "reference/ring.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "reference/dense.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Description;
using test::Exact;
using test::Rational;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const Direction kDirections[] = {Direction::down, Direction::up};

/// Calls check(plan) for every layout and direction and P = 1 ... most_ranks.
void for_all_plans(Index most_ranks, const auto& check) {
  for (const Layout layout : kLayouts) {
    for (const Direction direction : kDirections) {
      for (Index P = 1; P <= most_ranks; ++P) check(RingPlan{P, layout, direction});
    }
  }
}

template <class Real>
Answer<Real> ring_answer(const Problem<Real>& problem, const RingPlan& plan) {
  Trace trace;
  return ring_attention(problem, plan, trace);
}

/// Equal bits, so that NaN equals NaN and -0 differs from 0.
template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

/// A small full problem of one batch: `heads` query heads on `kv_heads` key heads.
test::OwnedProblem<double> plain_problem(Index rows, Index heads, Index kv_heads, Index width) {
  Description description;
  description.kv_heads = kv_heads, description.group = heads / kv_heads;
  description.queries = description.keys = rows;
  description.head_dim = description.value_dim = width;
  return test::build<double>(description);
}

}  // namespace

TEST_CASE(
    "C11: in exact arithmetic the ring equals dense softmax, for every layout, P "
    "and direction") {
  test::property("ring == dense, out and lse, bit for bit", [](const Description& description) {
    const auto owned = test::build<Exact>(description);
    const Answer<Exact> dense = dense_attention(owned.problem);
    for_all_plans(5, [&](const RingPlan& plan) {
      const auto answer = ring_answer(owned.problem, plan);
      RC_ASSERT(answer.out == dense.out);
      RC_ASSERT(answer.lse == dense.lse);
    });
  });
}

TEST_CASE("C6: after P steps every query has met every key it sees exactly once, as a bitmap") {
  // With q = 0 every weight is 1; with v_j = 2^j the numerator is the bitmap of the keys met, and a
  // key met twice would carry into its neighbour. The count of keys is in the LSE.
  Index wrong = 0;
  const std::vector<Exact> zeros(9, Exact(0));
  std::vector<Exact> bits;
  for (int j = 0; j < 9; ++j) bits.push_back(Exact(test::power_of_two(j)));
  for (const bool causal : {false, true}) {
    for (const Index window : {Index{-1}, Index{2}}) {
      for (Index rows = 1; rows <= 9; ++rows) {
        Problem<Exact> problem{.queries = rows, .keys = rows, .head_dim = 1, .value_dim = 1};
        problem.q = problem.k = row_major<Exact>(zeros, {1, 1, rows, 1});
        problem.v = row_major<Exact>(bits, {1, 1, rows, 1});
        problem.causal = causal, problem.window_left = window;
        for_all_plans(5, [&](const RingPlan& plan) {
          const auto answer = ring_answer(problem, plan);
          for (Index i = 0; i < rows; ++i) {
            Rational bitmap = 0, count = 0;
            for (Index j = 0; j < rows; ++j) {
              if ((causal && j > i) || (window >= 0 && j < i - window)) continue;
              bitmap += test::power_of_two(j);
              count += 1;
            }
            wrong += answer.out[i].rational() * count != bitmap;
            wrong += !(answer.lse[i] == Number<Exact>::logarithm(Exact(count)));
          }
        });
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C5: the trace of a run shows block (i - t) mod P at step t, and who it came from") {
  const auto owned = plain_problem(19, 1, 1, 2);
  Index computed = 0;
  for_all_plans(9, [&](const RingPlan& plan) {
    Trace trace;
    ring_attention(owned.problem, plan, trace);
    const Index P = plan.ranks, sign = plan.direction == Direction::down ? 1 : -1;
    for (const TraceEvent& event : trace) {
      const Index hops = event.action == Action::wait ? event.step + 1 : event.step;
      CHECK(event.block == modulo(event.rank - sign * hops, P));
      if (event.action == Action::post) CHECK(event.peer == modulo(event.rank + sign, P));
      if (event.action == Action::wait) CHECK(event.peer == modulo(event.rank - sign, P));
      computed += event.action == Action::compute;
    }
  });
  CHECK(computed == 6 * (9 * 10 * 19 / 6));  // sum of P^2 over P = 1 ... 9, six plans each
}

TEST_CASE("C7: a rank sends and receives P - 1 blocks of keys and values, to the byte, and no q") {
  const Index rows = 21, width = 3;
  for (const Index heads : {2, 4, 6}) {  // query heads must not show in the bytes
    const auto owned = plain_problem(rows, heads, 2, width);
    for_all_plans(9, [&](const RingPlan& plan) {
      Trace trace;
      ring_attention(owned.problem, plan, trace);
      std::vector<Index> sent(plan.ranks), received(plan.ranks), posts(plan.ranks),
          waits(plan.ranks);
      for (const TraceEvent& event : trace) {
        if (event.action == Action::post) sent[event.rank] += event.bytes, ++posts[event.rank];
        if (event.action == Action::wait) received[event.rank] += event.bytes, ++waits[event.rank];
      }
      const auto block_bytes = [&](Index block) {
        const Index elements = 2 * 2 * width;  // k and v, two heads
        return row_count({plan.layout, rows, plan.ranks}, block) * elements *
               static_cast<Index>(sizeof(double));
      };
      Index all = 0;
      for (Index block = 0; block < plan.ranks; ++block) all += block_bytes(block);
      for (Index r = 0; r < plan.ranks; ++r) {
        // It sends every block but the one it ends with, and receives every block but its own.
        const Index last = receive_from(r, plan.ranks, plan.direction);
        const Index end = plan.ranks == 1 ? r : send_to(r, plan.ranks, plan.direction);
        CHECK(posts[r] == plan.ranks - 1);
        CHECK(waits[r] == plan.ranks - 1);
        CHECK(sent[r] == all - block_bytes(end));
        CHECK(received[r] == all - block_bytes(r));
        CHECK(last_holder(r, plan.ranks, plan.direction) == last);
      }
    });
  }
}

TEST_CASE("C8: at every step a rank posts before it computes, and waits after it") {
  const auto owned = plain_problem(8, 1, 1, 1);
  for_all_plans(6, [&](const RingPlan& plan) {
    Trace trace;
    ring_attention(owned.problem, plan, trace);
    for (Index r = 0; r < plan.ranks; ++r) {
      std::vector<Action> actions;
      for (const TraceEvent& event : trace) {
        if (event.rank == r) actions.push_back(event.action);
      }
      std::vector<Action> expected;
      for (Index t = 0; t < plan.ranks - 1; ++t) {
        expected.insert(expected.end(), {Action::post, Action::compute, Action::wait});
      }
      expected.push_back(Action::compute);
      CHECK(actions == expected);
    }
  });
}

TEST_CASE("C17: the pairs a run computes are the pairs the integer functions count") {
  const Index rows = 23;
  auto owned = plain_problem(rows, 2, 1, 1);
  owned.problem.causal = true;
  for_all_plans(6, [&](const RingPlan& plan) {
    Trace trace;
    ring_attention(owned.problem, plan, trace);
    Index pairs = 0;
    for (const TraceEvent& event : trace) pairs += event.pairs;
    CHECK(pairs == 2 * rows * (rows + 1) / 2);
  });
}

TEST_CASE(
    "C19: numbers at places no query sees, NaN and infinity too, change no bit of the answer") {
  test::property("poisoned invisible places", [](const Description& description) {
    auto owned = test::build<double>(description);
    const Problem<double>& problem = owned.problem;
    const Answer<double> dense = dense_attention(problem);
    const RingPlan plan{3, Layout::zigzag, Direction::down};
    const Answer<double> ring = ring_answer(problem, plan);

    const double poison[] = {std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
    const double hidden = Number<double>::minus_infinity();
    std::vector<bool> key_seen(problem.batches * problem.kv_heads * problem.keys);
    for (const Head& head : all_heads(problem)) {
      for (Index i = 0; i < problem.queries; ++i) {
        bool sees = false;
        for (Index j = 0; j < problem.keys; ++j) {
          const QueryRow query{head.b, head.h, i};
          const Index kv_row = head.b * problem.kv_heads + problem.kv_head(head.h);
          const bool visible_pair = visible(problem, query, j);
          if (visible_pair) key_seen[kv_row * problem.keys + j] = sees = true;
          // bias is [1, H, Nq, Nk] here: with one batch a hidden place belongs to one pair only
          double* bias = owned.bias.empty()
                             ? nullptr
                             : &owned.bias[(head.h * problem.queries + i) * problem.keys + j];
          if (bias && problem.batches == 1 && !visible_pair && *bias != hidden) *bias = poison[0];
        }
        for (Index d = 0; d < problem.head_dim && !sees; ++d) {
          const Index row = (head.b * problem.heads + head.h) * problem.queries + i;
          owned.q[row * problem.head_dim + d] = poison[(i + d) % 3];
        }
      }
    }
    for (std::size_t row = 0; row < key_seen.size(); ++row) {
      if (key_seen[row]) continue;
      for (Index d = 0; d < problem.head_dim; ++d) {
        owned.k[row * problem.head_dim + d] = poison[(row + d) % 3];
      }
      for (Index c = 0; c < problem.value_dim; ++c) {
        owned.v[row * problem.value_dim + c] = poison[(row + c) % 3];
      }
    }
    const Answer<double> poisoned_dense = dense_attention(problem);
    const Answer<double> poisoned_ring = ring_answer(problem, plan);
    RC_ASSERT(same_bits(poisoned_dense.out, dense.out));
    RC_ASSERT(same_bits(poisoned_dense.lse, dense.lse));
    RC_ASSERT(same_bits(poisoned_ring.out, ring.out));
    RC_ASSERT(same_bits(poisoned_ring.lse, ring.lse));
  });
}

TEST_CASE(
    "C19: rows that see nothing: out by the empty row's rule, lse -inf; with a sink: 0 and it") {
  auto owned = plain_problem(4, 2, 1, 2);
  Problem<double>& problem = owned.problem;
  const std::vector<std::uint8_t> nobody(1, 0);
  problem.mask = row_major<std::uint8_t>(nobody, {1, 1, 1, 1});
  for_all_plans(6, [&](const RingPlan& plan) {
    problem.sinks = {};
    problem.empty_row = EmptyRow::zero;
    for (const double x : ring_answer(problem, plan).out) CHECK(x == 0);
    for (const double x : ring_answer(problem, plan).lse) CHECK(x == -INFINITY);
    problem.empty_row = EmptyRow::nan;
    for (const double x : ring_answer(problem, plan).out) CHECK(std::isnan(x));
    const std::vector<double> sinks{0.75, -3};
    problem.sinks = row_major<double>(sinks, {1, 2, 1, 1});
    const Answer<double> answer = ring_answer(problem, plan);
    for (const double x : answer.out) CHECK(x == 0);
    for (std::size_t row = 0; row < 8; ++row) CHECK(answer.lse[row] == sinks[row / 4]);
  });
}
