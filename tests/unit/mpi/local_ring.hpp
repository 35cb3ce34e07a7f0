// A problem in memory run through the rings of mpi/, its ranks being threads, and put together
// again the way the reference does it, so that the two can be compared bit for bit.
#pragma once

#include <bit>
#include <cstring>
#include <functional>
#include <mutex>

#include "mpi/ring_backward.hpp"
#include "mpi/tile_scalar.hpp"
#include "mpi/transport_local.hpp"
#include "reference/ring_backward.hpp"

namespace ringproof::test {

using mpi::Index;

template <class Real>
using MakeTile = std::function<std::unique_ptr<mpi::Tile<Real>>(mpi::RankProblem<Real>)>;

template <class Real>
struct RingRun {
  reference::Answer<Real> answer;
  reference::Gradients<Real> gradients;  // of the backward pass
  std::vector<reference::Trace> traces;  // [P]
};

/// Both passes, or the forward pass alone if `upstream` is null.
template <class Real>
RingRun<Real> run_local_ring(const reference::Problem<Real>& problem,
                             const reference::Upstream<Real>* upstream,
                             const reference::RingPlan& plan, const MakeTile<Real>& make_tile,
                             const mpi::DebugOptions& debug = {}) {
  const auto P = static_cast<std::size_t>(plan.ranks);
  std::vector<reference::ShardAnswer<Real>> answers(P);
  std::vector<mpi::RankGradients<Real>> parts(P);
  RingRun<Real> run;
  run.traces.resize(P);
  const mpi::MemorySource<Real> source{problem, upstream ? *upstream : reference::Upstream<Real>{}};
  mpi::run_ranks(plan.ranks, debug, [&](mpi::Transport& transport) {
    const auto r = static_cast<std::size_t>(transport.rank());
    const mpi::Journeys journeys(problem, plan.layout, plan.ranks, plan.direction);
    const auto tile =
        make_tile(mpi::deal(problem, source, plan.layout, plan.ranks, transport.rank()));
    mpi::BlockBuffers buffers(mpi::largest_block(*tile, plan.ranks),
                              upstream ? mpi::OwnBlock::kept : mpi::OwnBlock::given);
    answers[r] = mpi::ring_forward(transport, journeys, *tile, buffers, run.traces[r]);
    if (!upstream) return;
    parts[r] = mpi::ring_backward(transport, journeys, *tile, answers[r], buffers, run.traces[r]);
  });
  run.answer = reference::gather(problem, plan.layout, answers);
  if (!upstream) return run;

  run.gradients = reference::no_gradients(problem);
  const mpi::Sharding queries{plan.layout, problem.queries, plan.ranks};
  const mpi::Sharding keys{plan.layout, problem.keys, plan.ranks};
  auto& whole = run.gradients;
  for (Index r = 0; r < plan.ranks; ++r) {
    const auto& part = parts[static_cast<std::size_t>(r)];
    put_rows(part.queries.dq, problem.queries, queries, r, problem.head_dim, whole.dq);
    put_rows(part.dk, problem.keys, keys, r, problem.head_dim, whole.dk);
    put_rows(part.dv, problem.keys, keys, r, problem.value_dim, whole.dv);
    if (bias_has_rows(problem)) {
      put_rows(part.queries.dbias.data, problem.queries, queries, r, whole.dbias.size[3],
               whole.dbias.data);
    }
  }
  whole.dsinks = parts.back().queries.dsinks;
  if (!bias_has_rows(problem)) whole.dbias.data = parts.back().queries.dbias.data;
  return run;
}

/// Equal bits: NaN equals NaN, and -0 is not 0.
template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

template <class Real>
bool same_bits(const reference::Answer<Real>& a, const reference::Answer<Real>& b) {
  return same_bits(a.out, b.out) && same_bits(a.lse, b.lse);
}

template <class Real>
bool same_bits(const reference::Gradients<Real>& a, const reference::Gradients<Real>& b) {
  return same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) && same_bits(a.dv, b.dv) &&
         same_bits(a.dbias.data, b.dbias.data) && same_bits(a.dsinks, b.dsinks);
}

}  // namespace ringproof::test
