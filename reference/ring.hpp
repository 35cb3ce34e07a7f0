// Ring attention, all ranks in one process and in lockstep: the document's inner loop, whose lines
// we number. Each is one statement below, in the document's order, under its number; what the
// document lets every device do at once is a loop over the ranks here.
//   L1  no query row has seen a key yet
//   L2  every rank starts with its own block of keys and values
//   L3  P steps
//   L4    pass the block on and expect the neighbour's, but not in the last step (C7)
//   L5    scores of the rank's queries against the block in hand
//   L6    fold them and the block's values into the states
//   L7    wait for the transfer; the block that arrived takes the place of the one in hand (C8)
//   L8  the one division
// No threads and no overlap: what really runs at the same time is the other tiers' matter.
#pragma once

#include <utility>

#include "reference/block_attention.hpp"
#include "reference/ring_schedule.hpp"
#include "reference/trace.hpp"

namespace ringproof::reference {

/// How many ranks, which rows each owns, and which way the blocks travel.
struct RingPlan {
  Index ranks = 1;
  Layout layout = Layout::contiguous;
  Direction direction = Direction::down;
};

/// Every rank sends its block to its neighbour; the copies are in flight until wait_all.
template <class Real>
void post_all(const std::vector<KeyBlock<Real>>& kv, std::vector<KeyBlock<Real>>& next, Index t,
              Direction direction, Trace& trace) {
  const Index P = static_cast<Index>(kv.size());
  for (Index r = 0; r < P; ++r) {
    const Index to = send_to(r, P, direction);
    next[to] = kv[r];
    trace.push_back({t, r, Action::post, kv[r].origin, to, kv[r].bytes(), 0});
  }
}

/// Every rank has received; the visitor replaces the block it had.
template <class Real>
void wait_all(std::vector<KeyBlock<Real>>& kv, std::vector<KeyBlock<Real>>& next, Index t,
              Direction direction, Trace& trace) {
  const Index P = static_cast<Index>(kv.size());
  for (Index r = 0; r < P; ++r) {
    kv[r] = std::move(next[r]);
    const Index from = receive_from(r, P, direction);
    trace.push_back({t, r, Action::wait, kv[r].origin, from, kv[r].bytes(), 0});
  }
}

/// The inner loop. `shard` is taken over: a caller that moves it in keeps no keys, and a rank then
/// holds two blocks, the one in hand and the one that arrives; a caller that keeps its shards, as a
/// backward pass must, pays for a third (C12, C13).
template <class Real>
std::vector<ShardAnswer<Real>> ring(const Problem<Real>& problem, Direction direction,
                                    std::vector<Shard<Real>> shard, Trace& trace) {
  const Index P = static_cast<Index>(shard.size());
  const std::vector<Head> heads = all_heads(problem);
  std::vector<States<Real>> state(P);
  std::vector<KeyBlock<Real>> kv(P), next(P);
  std::vector<ShardAnswer<Real>> O(P);

  // [inner-loop]
  for (Index r = 0; r < P; ++r) state[r] = empty_states(problem, shard[r].queries);  // L1
  for (Index r = 0; r < P; ++r) kv[r] = std::move(shard[r].keys);                    // L2
  for (Index t = 0; t < step_count(P); ++t) {                                        // L3
    if (transfers_after(t, P)) post_all(kv, next, t, direction, trace);              // L4
    for (Index r = 0; r < P; ++r) {
      Index pairs = 0;
      for (const Head& head : heads) {
        const Matrix<Real> S = scores(problem, head, shard[r].queries, kv[r]);  // L5
        online_softmax(problem, head, state[r], S, kv[r]);                      // L6
        pairs += visible_pairs(S);
      }
      trace.push_back({t, r, Action::compute, kv[r].origin, -1, 0, pairs});
    }
    if (transfers_after(t, P)) wait_all(kv, next, t, direction, trace);  // L7
  }
  for (Index r = 0; r < P; ++r) O[r] = finish_rank(problem, shard[r].queries, state[r]);  // L8
  // [/inner-loop]
  return O;
}

/// The whole way: scatter, ring, gather.
template <class Real>
Answer<Real> ring_attention(const Problem<Real>& problem, const RingPlan& plan, Trace& trace) {
  return gather(problem, plan.layout,
                ring(problem, plan.direction, scatter(problem, plan.layout, plan.ranks), trace));
}

}  // namespace ringproof::reference
