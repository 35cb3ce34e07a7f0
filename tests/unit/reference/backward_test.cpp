// The backward pass: the ring against the definition in exact arithmetic, the definition against
// finite differences at 100 digits, and the way home of dk and dv.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstring>

#include "reference/dense.hpp"
#include "reference/dense_backward.hpp"
#include "reference/ring_backward.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Description;
using test::Exact;
using Wide = boost::multiprecision::cpp_bin_float_100;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const Direction kDirections[] = {Direction::down, Direction::up};

void for_all_plans(Index most_ranks, const auto& check) {
  for (const Layout layout : kLayouts) {
    for (const Direction direction : kDirections) {
      for (Index P = 1; P <= most_ranks; ++P) check(RingPlan{P, layout, direction});
    }
  }
}

/// Upstream gradients of a problem, drawn; `kinds` 1: dout, 2: dlse, 3: both.
template <class Real>
struct OwnedUpstream {
  std::vector<Real> dout, dlse;
  Upstream<Real> views;

  OwnedUpstream(const Problem<Real>& p, unsigned seed, unsigned kinds) {
    test::Draw<Real> draw{std::mt19937_64(seed)};
    const Index rows = p.batches * p.heads * p.queries;
    dout = draw.numbers(rows * p.value_dim, 3);
    dlse = draw.numbers(rows, 3);
    if (kinds & 1) views.dout = row_major<Real>(dout, {p.batches, p.heads, p.queries, p.value_dim});
    if (kinds & 2) views.dlse = row_major<Real>(dlse, {p.batches, p.heads, p.queries, 1});
  }
};

template <class Real>
bool equal(const Gradients<Real>& a, const Gradients<Real>& b) {
  return a.dq == b.dq && a.dk == b.dk && a.dv == b.dv && a.dbias.data == b.dbias.data &&
         a.dsinks == b.dsinks;
}

template <class Real>
Gradients<Real> ring_gradients(const Problem<Real>& problem, const Upstream<Real>& upstream,
                               const RingPlan& plan) {
  Trace trace;
  return ring_attention_backward(problem, upstream, plan, trace).gradients;
}

/// sum out.dout + sum lse.dlse; rows that see nothing have no part in it.
Wide objective(const Problem<Wide>& problem, const OwnedUpstream<Wide>& upstream) {
  const Answer<Wide> answer = dense_attention(problem);
  Wide sum = 0;
  for (std::size_t row = 0; row < answer.lse.size(); ++row) {
    if (is_minus_infinity(answer.lse[row])) continue;
    sum += answer.lse[row] * upstream.dlse[row];
    const std::size_t width = answer.out.size() / answer.lse.size();
    for (std::size_t c = 0; c < width; ++c) {
      sum += answer.out[row * width + c] * upstream.dout[row * width + c];
    }
  }
  return sum;
}

/// Does the gradient give the change of the objective when `numbers` move along `direction`? The
/// central difference with step h errs by a multiple of h^2.
bool predicts(const Problem<Wide>& problem, const OwnedUpstream<Wide>& upstream,
              std::vector<Wide>& numbers, const std::vector<Wide>& direction,
              const std::vector<Wide>& gradient) {
  const Wide h("1e-30"), accuracy("1e-50");
  Wide predicted = 0, size = 1;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    predicted += gradient[n] * direction[n];
    size += abs(gradient[n] * direction[n]);
  }
  const std::vector<Wide> kept = numbers;
  const auto moved = [&](const Wide& step) {
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      if (!is_minus_infinity(kept[n])) numbers[n] = kept[n] + step * direction[n];
    }
    return objective(problem, upstream);
  };
  const Wide forward = moved(h), backward = moved(-h);
  numbers = kept;
  return abs((forward - backward) / (2 * h) - predicted) < accuracy * size;
}

}  // namespace

TEST_CASE(
    "C11: in exact arithmetic the gradients of the ring equal those of dense softmax, for every "
    "layout, P and direction") {
  test::property("ring == dense, all five gradients", [](const Description& description) {
    const auto owned = test::build<Exact>(description);
    const unsigned kinds = 1 + description.seed % 3;
    const OwnedUpstream<Exact> upstream(owned.problem, description.seed, kinds);
    const Gradients<Exact> dense = dense_backward(owned.problem, upstream.views);
    for_all_plans(4, [&](const RingPlan& plan) {
      RC_ASSERT(equal(ring_gradients(owned.problem, upstream.views, plan), dense));
    });
  });
}

TEST_CASE("The gradients are derivatives: finite differences at 100 digits agree to 50") {
  test::property("gradient . direction == change of the objective", [](Description description) {
    description.queries = std::min<Index>(description.queries, 5);
    description.scales = false;  // gradients are with respect to the dequantised numbers
    description.keys = std::min<Index>(description.keys, 5);
    auto owned = test::build<Wide>(description);
    Problem<Wide>& problem = owned.problem;
    test::Draw<Wide> draw{std::mt19937_64(description.seed + 1)};
    if (draw.integer(0, 1) == 1) problem.softcap = Wide(1) + draw.number(1, 64) / 2;
    problem.scale = Wide(1) / 3;
    const OwnedUpstream<Wide> upstream(problem, description.seed, 3);
    const RingPlan plan{draw.integer(1, 4), kLayouts[draw.integer(0, 2)], Direction::down};
    const Gradients<Wide> ring = ring_gradients(problem, upstream.views, plan);
    const std::pair<std::vector<Wide>*, const std::vector<Wide>*> inputs[] = {
        {&owned.q, &ring.dq},
        {&owned.k, &ring.dk},
        {&owned.v, &ring.dv},
        {&owned.bias, &ring.dbias.data},
        {&owned.sinks, &ring.dsinks}};
    for (const auto& [numbers, gradient] : inputs) {
      RC_ASSERT(numbers->size() == gradient->size());
      const auto direction = draw.numbers(static_cast<Index>(numbers->size()), 1);
      RC_ASSERT(predicts(problem, upstream, *numbers, direction, *gradient));
    }
  });
}

TEST_CASE(
    "A broadcast bias collects its gradient over its broadcast axes, on any number of ranks") {
  Description description;
  description.batches = 2, description.group = 2, description.queries = 5, description.keys = 4;
  const auto owned = test::build<Exact>(description);
  Problem<Exact> problem = owned.problem;
  const std::vector<Exact> zeros(2 * 2 * 5 * 4, Exact(0));
  const OwnedUpstream<Exact> upstream(problem, 3, 3);
  problem.bias = row_major<Exact>(zeros, {2, 2, 5, 4});
  BiasGradient<Exact> full = dense_backward(problem, upstream.views).dbias;
  for (unsigned axes = 0; axes < 16; ++axes) {  // bit n: axis n is broadcast
    const std::array<Index, 4> size{axes & 1 ? 1 : 2, axes & 2 ? 1 : 2, axes & 4 ? 1 : 5,
                                    axes & 8 ? 1 : 4};
    problem.bias = row_major<Exact>(zeros, size);
    BiasGradient<Exact> sum = no_bias_gradient(problem, problem.queries);
    CHECK(sum.size == size);
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < 2; ++h) {
        for (Index i = 0; i < 5; ++i) {
          for (Index j = 0; j < 4; ++j) sum.add(b, h, i, j, full.at(b, h, i, j));
        }
      }
    }
    for_all_plans(3, [&](const RingPlan& plan) {
      CHECK(ring_gradients(problem, upstream.views, plan).dbias.data == sum.data);
    });
  }
}

TEST_CASE("C7: dk and dv make P hops, one more than their block, and the last one is home") {
  Description description;
  description.queries = description.keys = 21, description.kv_heads = 2, description.head_dim = 3;
  description.value_dim = 2;
  const auto owned = test::build<double>(description);
  const OwnedUpstream<double> upstream(owned.problem, 1, 3);
  for_all_plans(7, [&](const RingPlan& plan) {
    const Index P = plan.ranks, sign = plan.direction == Direction::down ? 1 : -1;
    Trace trace;
    ring_attention_backward(owned.problem, upstream.views, plan, trace);
    std::vector<Index> hops(P), holder(P);
    for (Index block = 0; block < P; ++block) holder[block] = block;
    for (const TraceEvent& event : trace) {
      if (event.action == Action::gradient) CHECK(event.rank == holder[event.block]);
      if (event.action != Action::wait_gradient) continue;
      CHECK(event.peer == holder[event.block]);
      CHECK(event.rank == modulo(event.peer + sign, P));
      const Index rows = row_count({plan.layout, 21, P}, event.block);
      CHECK(event.bytes == rows * 2 * (3 + 2) * static_cast<Index>(sizeof(double)));
      holder[event.block] = event.rank;
      ++hops[event.block];
    }
    for (Index block = 0; block < P; ++block) {
      CHECK(hops[block] == P);
      CHECK(holder[block] == block);
    }
  });
}

TEST_CASE("C19: numbers at places no query sees change no bit of any gradient") {
  test::property("poisoned invisible places", [](const Description& description) {
    auto owned = test::build<double>(description);
    const Problem<double>& problem = owned.problem;
    OwnedUpstream<double> upstream(problem, description.seed, 3);
    const RingPlan plan{3, Layout::striped, Direction::up};
    const Gradients<double> clean = ring_gradients(problem, upstream.views, plan);
    std::vector<bool> key_seen(problem.batches * problem.kv_heads * problem.keys);
    for (const Head& head : all_heads(problem)) {
      for (Index i = 0; i < problem.queries; ++i) {
        bool sees = static_cast<bool>(problem.sinks);
        for (Index j = 0; j < problem.keys; ++j) {
          if (!visible(problem, {head.b, head.h, i}, j)) continue;
          const Index kv_row = head.b * problem.kv_heads + problem.kv_head(head.h);
          key_seen[kv_row * problem.keys + j] = sees = true;
        }
        if (sees) continue;
        const Index row = (head.b * problem.heads + head.h) * problem.queries + i;
        upstream.dlse[row] = NAN;
        for (Index d = 0; d < problem.head_dim; ++d) owned.q[row * problem.head_dim + d] = NAN;
        for (Index c = 0; c < problem.value_dim; ++c) {
          upstream.dout[row * problem.value_dim + c] = NAN;
        }
      }
    }
    for (std::size_t row = 0; row < key_seen.size(); ++row) {
      if (key_seen[row]) continue;
      for (Index d = 0; d < problem.head_dim; ++d) owned.k[row * problem.head_dim + d] = INFINITY;
      for (Index c = 0; c < problem.value_dim; ++c) owned.v[row * problem.value_dim + c] = NAN;
    }
    const Gradients<double> poisoned = ring_gradients(problem, upstream.views, plan);
    RC_ASSERT(equal(poisoned, clean));  // no NaN in either, or they would differ
  });
}

TEST_CASE("A query that sees only a sink moves the sink by its dlse, and nothing else") {
  Description description;
  description.queries = 3, description.keys = 2, description.sinks = true;
  const auto owned = test::build<Exact>(description);
  Problem<Exact> problem = owned.problem;
  const std::vector<std::uint8_t> nobody(1, 0);
  problem.mask = row_major<std::uint8_t>(nobody, {1, 1, 1, 1});
  const OwnedUpstream<Exact> upstream(problem, 9, 3);
  const Gradients<Exact> ring =
      ring_gradients(problem, upstream.views, RingPlan{2, Layout::contiguous, Direction::down});
  CHECK(ring.dsinks[0] == upstream.dlse[0] + upstream.dlse[1] + upstream.dlse[2]);
  for (const auto* gradient : {&ring.dq, &ring.dk, &ring.dv}) {
    for (const Exact& x : *gradient) CHECK(x == Exact(0));
  }
}
