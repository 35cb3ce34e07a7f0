// The mistake the document warns of, written out: every block is normalised on its own, and the
// finished blocks are averaged. Nothing else differs from reference/ring.hpp.
#pragma once

#include "reference/ring.hpp"

namespace ringproof::demo {

// [averaging-ring]
/// `out` as the plain mean (11) over the blocks in which a query sees a key.
template <class Real>
reference::Answer<Real> averaging_ring(const reference::Problem<Real>& problem,
                                       reference::Layout layout, reference::Index ranks) {
  using namespace reference;
  const std::vector<Shard<Real>> shard = scatter(problem, layout, ranks);
  std::vector<ShardAnswer<Real>> mean;
  for (Index r = 0; r < ranks; ++r) {
    const QueryShard<Real>& queries = shard[r].queries;
    const States<Real> nothing = empty_states(problem, queries);
    ShardAnswer<Real> sum{std::vector<Real>(nothing.size() * problem.value_dim),
                          std::vector<Real>(nothing.size())};
    std::vector<Index> blocks(nothing.size(), 0);
    for (Index t = 0; t < ranks; ++t) {
      const KeyBlock<Real>& kv = shard[block_at(t, r, ranks, Direction::down)].keys;
      States<Real> state = nothing;  // the mistake begins: a state for each block
      for (const Head& head : all_heads(problem)) {
        online_softmax(problem, head, state, scores(problem, head, queries, kv), kv);
      }
      const ShardAnswer<Real> finished = finish_rank(problem, queries, state);
      for (std::size_t row = 0; row < state.size(); ++row) {
        if (is_empty(state[row])) continue;
        ++blocks[row];
        for (Index c = 0; c < problem.value_dim; ++c) {
          sum.out[row * problem.value_dim + c] += finished.out[row * problem.value_dim + c];
        }
      }
    }
    for (std::size_t row = 0; row < blocks.size(); ++row) {
      for (Index c = 0; c < problem.value_dim; ++c) {
        if (blocks[row] > 0) sum.out[row * problem.value_dim + c] /= Real(blocks[row]);
      }
    }
    mean.push_back(std::move(sum));
  }
  return gather(problem, layout, mean);
}
// [/averaging-ring]

}  // namespace ringproof::demo
