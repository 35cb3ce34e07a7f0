// The backward pass of the ring, all ranks in one process and in lockstep. Keys and values go round
// once more, as in ring.hpp. Behind each block travels its gradient: every rank that holds the
// block adds its part and passes the sum on. The sum makes P hops, one more than the block, because
// it must come home to the rank that owns the block. dq never travels: queries stay.
//   B1  every rank starts with its own block and with no gradient of it
//   B2  P steps
//   B3    pass the block on and expect the neighbour's, but not in the last step
//   B4    the rank's part of all gradients from the block in hand; dq stays
//   B5    add the part to the gradient that came with the block
//   B6    pass the gradient on, in the last step too: that hop brings it home
//   B7    wait for the transfers
//   B8  the sinks' gradients, once a row
#pragma once

#include "reference/backward.hpp"
#include "reference/ring.hpp"

namespace ringproof::reference {

/// One rank at the end of the pass: its own rows, and the gradient of its own block.
template <class Real>
struct ShardGradients {
  QueryGradient<Real> queries;
  KeyGradient<Real> keys;
};

/// Every rank sends the gradient it holds to its neighbour, and has received one: gradients are
/// moved, never copied, since a rank holds the sum of one block at a time.
template <class Real>
void pass_gradients(std::vector<KeyGradient<Real>>& gradient, Index t, Direction direction,
                    Trace& trace) {
  const Index P = static_cast<Index>(gradient.size());
  std::vector<KeyGradient<Real>> next(P);
  for (Index r = 0; r < P; ++r) {
    const Index to = send_to(r, P, direction);
    trace.push_back({t, r, Action::post_gradient, gradient[r].origin, to, gradient[r].bytes(), 0});
    next[to] = std::move(gradient[r]);
  }
  for (Index r = 0; r < P; ++r) {
    gradient[r] = std::move(next[r]);
    const Index from = receive_from(r, P, direction);
    trace.push_back(
        {t, r, Action::wait_gradient, gradient[r].origin, from, gradient[r].bytes(), 0});
  }
}

/// The loop of the backward pass. `upstream` holds what each rank kept of the forward pass.
template <class Real>
std::vector<ShardGradients<Real>> ring_backward(const Problem<Real>& problem, Direction direction,
                                                const std::vector<Shard<Real>>& shard,
                                                const std::vector<UpstreamShard<Real>>& upstream,
                                                Trace& trace) {
  const Index P = static_cast<Index>(shard.size());
  std::vector<KeyBlock<Real>> kv(P), next(P);
  std::vector<KeyGradient<Real>> travelling(P);
  std::vector<QueryGradient<Real>> home(P);
  for (Index r = 0; r < P; ++r) home[r] = no_query_gradient(problem, shard[r].queries);

  // [backward-loop]
  for (Index r = 0; r < P; ++r) kv[r] = shard[r].keys;                         // B1
  for (Index r = 0; r < P; ++r) travelling[r] = no_key_gradient<Real>(kv[r]);  // B1
  for (Index t = 0; t < step_count(P); ++t) {                                  // B2
    if (transfers_after(t, P)) post_all(kv, next, t, direction, trace);        // B3
    for (Index r = 0; r < P; ++r) {
      const KeyGradient<Real> part =
          backward_block(problem, shard[r].queries, upstream[r], kv[r], home[r]);  // B4
      add_to(travelling[r].dk, part.dk);                                           // B5
      add_to(travelling[r].dv, part.dv);                                           // B5
      trace.push_back({t, r, Action::gradient, kv[r].origin, -1, 0, 0});
    }
    pass_gradients(travelling, t, direction, trace);                     // B6
    if (transfers_after(t, P)) wait_all(kv, next, t, direction, trace);  // B7
  }
  for (Index r = 0; r < P; ++r) {
    add_sink_gradients(problem, shard[r].queries, upstream[r], home[r]);  // B8
  }
  // [/backward-loop]

  std::vector<ShardGradients<Real>> result;
  for (Index r = 0; r < P; ++r) result.push_back({std::move(home[r]), std::move(travelling[r])});
  return result;
}

/// Rows of one rank out of an upstream gradient; zeros where it is absent.
template <class Real>
std::vector<Real> take_upstream(const View<Real>& stored, const Problem<Real>& problem, Index width,
                                const QueryShard<Real>& queries) {
  if (stored) {
    return take_rows(stored, {}, problem.batches, problem.heads, width, queries.sharding,
                     queries.rank);
  }
  return std::vector<Real>(problem.batches * problem.heads * queries.rows() * width, Real{0});
}

/// What a rank keeps of the forward pass and of the upstream gradients.
template <class Real>
UpstreamShard<Real> keep_for_backward(const Problem<Real>& problem, const Upstream<Real>& upstream,
                                      const QueryShard<Real>& queries,
                                      const ShardAnswer<Real>& answer) {
  UpstreamShard<Real> kept{
      take_upstream(upstream.dout, problem, problem.value_dim, queries), answer.lse, {}};
  const std::vector<Real> dlse = take_upstream(upstream.dlse, problem, 1, queries);
  kept.delta = row_delta<Real>(kept.dout, answer.out, answer.lse, dlse);
  return kept;
}

/// Puts the gradients of all ranks together. What is a sum over ranks is summed in their order.
template <class Real>
Gradients<Real> gather_gradients(const Problem<Real>& problem,
                                 const std::vector<Shard<Real>>& shard,
                                 const std::vector<ShardGradients<Real>>& parts) {
  Gradients<Real> whole = no_gradients(problem);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto& [queries, keys] = shard[r];
    put_rows(parts[r].queries.dq, problem.queries, queries.sharding, queries.rank, problem.head_dim,
             whole.dq);
    put_rows(parts[r].keys.dk, problem.keys, keys.sharding, keys.origin, problem.head_dim,
             whole.dk);
    put_rows(parts[r].keys.dv, problem.keys, keys.sharding, keys.origin, problem.value_dim,
             whole.dv);
    if (bias_has_rows(problem)) {
      put_rows(parts[r].queries.dbias.data, problem.queries, queries.sharding, queries.rank,
               whole.dbias.size[3], whole.dbias.data);
    } else {
      add_to(whole.dbias.data, parts[r].queries.dbias.data);
    }
    add_to(whole.dsinks, parts[r].queries.dsinks);
  }
  return whole;
}

template <class Real>
struct AnswerAndGradients {
  Answer<Real> answer;
  Gradients<Real> gradients;
};

/// The whole way: scatter, ring, backward ring, gather. Every rank keeps its own block.
template <class Real>
AnswerAndGradients<Real> ring_attention_backward(const Problem<Real>& problem,
                                                 const Upstream<Real>& upstream,
                                                 const RingPlan& plan, Trace& trace) {
  const auto shard = scatter(problem, plan.layout, plan.ranks);
  const auto answers = ring(problem, plan.direction, shard, trace);
  std::vector<UpstreamShard<Real>> kept;
  for (std::size_t r = 0; r < shard.size(); ++r) {
    kept.push_back(keep_for_backward(problem, upstream, shard[r].queries, answers[r]));
  }
  const auto parts = ring_backward(problem, plan.direction, shard, kept, trace);
  return {gather(problem, plan.layout, answers), gather_gradients(problem, shard, parts)};
}

}  // namespace ringproof::reference
