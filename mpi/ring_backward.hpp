// The backward pass on one rank. B1 ... B8 are those of reference/ring_backward.hpp. A rank adds
// its part to the gradient that comes behind a block only when it has computed it, so the gradient
// of step t is on its way while step t + 1 computes. Once nobody ahead wants the block, its
// gradient goes home straight.
#pragma once

#include "mpi/ring_forward.hpp"

namespace ringproof::mpi {

/// One rank's gradients: of its queries, and of its own keys and values.
template <class Real>
struct RankGradients {
  reference::QueryGradient<Real> queries;
  std::vector<Real> dk;  // [B, Hkv, m, D]
  std::vector<Real> dv;  // [B, Hkv, m, Dv]
};

/// The gradient that travels behind a block. Three buffers: the part that is computed, the part of
/// the step before that is still leaving, and the sum that arrives.
template <class Real>
class GradientPasser {
 public:
  GradientPasser(Transport& transport, const Journeys& journeys, const Tile<Real>& tile,
                 reference::Trace& trace)
      : transport_(transport), journeys_(journeys), tile_(tile), trace_(trace) {
    std::size_t largest = 0;
    for (Index origin = 0; origin < journeys.ranks(); ++origin) {
      largest = std::max(largest, tile.gradient_size(origin));
    }
    for (AlignedBytes* buffer : {&part_[0], &part_[1], &arriving_}) {
      *buffer = AlignedBytes(largest * sizeof(Real));
    }
    home_.assign(tile.gradient_size(transport.rank()), Real{0});
    expect_home();
  }

  /// Where the part of a step is written; zeros, for a rank that has none.
  std::span<Real> part(Index step) {
    return part_[step % 2].template as<Real>(tile_.gradient_size(origin(step)));
  }

  /// Adds the part to the sum that came with the block, if one did.
  void add_arrived(Index step) {
    transport_.wait(batch_);
    batch_ = 0;
    if (!arrives_) return;
    const auto sum = arriving_.template as<Real>(tile_.gradient_size(origin(step)));
    const auto mine = part(step);
    for (std::size_t n = 0; n < mine.size(); ++n) mine[n] = sum[n] + mine[n];
    note(step - 1, reference::Action::wait_gradient, origin(step),
         reference::receive_from(transport_.rank(), journeys_.ranks(), journeys_.direction()),
         mine.size_bytes());
  }

  /// Passes the sum on, to the neighbour or home, and expects the next one.
  void post(Index step) {
    const Index r = transport_.rank(), P = journeys_.ranks(), block = origin(step);
    const auto bytes = std::as_writable_bytes(part(step));
    const bool moves = journeys_.gradient_moves(block, step);
    const bool ends = !moves && journeys_.wanted(block).last == step;
    if (moves || (ends && block != r)) {
      const Index to = moves ? reference::send_to(r, P, journeys_.direction()) : block;
      transport_.post({.lane = moves ? Lane::gradients : Lane::home, .to = to, .outgoing = bytes});
      note(step, reference::Action::post_gradient, block, to, bytes.size());
    } else if (ends) {
      std::copy_n(part(step).begin(), home_.size(), home_.begin());  // nobody else wants it
    }
    arrives_ = step + 1 < P && journeys_.gradient_moves(origin(step + 1), step);
    if (arrives_) {
      const std::size_t size = tile_.gradient_size(origin(step + 1)) * sizeof(Real);
      transport_.post({.lane = Lane::gradients,
                       .from = reference::receive_from(r, P, journeys_.direction()),
                       .incoming = arriving_.first(size)});
    }
    batch_ = transport_.commit();
  }

  /// The gradient of the rank's own block: it has come home.
  std::vector<Real> wait_home() {
    transport_.wait(batch_);
    transport_.wait(home_batch_);
    if (home_batch_ != 0) {
      const Index r = transport_.rank();
      note(journeys_.wanted(r).last, reference::Action::wait_gradient, r, journeys_.home_from(r),
           home_.size() * sizeof(Real));
    }
    return std::move(home_);
  }

 private:
  Index origin(Index step) const { return journeys_.block_at(step, transport_.rank()); }

  void note(Index step, reference::Action action, Index block, Index peer, std::size_t bytes) {
    trace_.push_back({step, transport_.rank(), action, block, peer, static_cast<Index>(bytes), 0});
  }

  /// Posted first of all: a sender that must not wait for its receiver's loop to end finds it.
  void expect_home() {
    const Index from = journeys_.home_from(transport_.rank());
    if (from < 0) return;
    transport_.post(
        {.lane = Lane::home, .from = from, .incoming = std::as_writable_bytes(std::span(home_))});
    home_batch_ = transport_.commit();
  }

  Transport& transport_;
  const Journeys& journeys_;
  const Tile<Real>& tile_;
  reference::Trace& trace_;
  std::array<AlignedBytes, 2> part_;
  AlignedBytes arriving_;
  std::vector<Real> home_;
  Batch batch_ = 0, home_batch_ = 0;
  bool arrives_ = false;
};

/// Sums over the ranks in their order, once down the chain 0, 1, ... P - 1; the last rank has them.
template <class Real>
void sum_down_the_chain(Transport& transport, std::vector<Real>& numbers) {
  const Index r = transport.rank(), P = transport.size();
  if (numbers.empty()) return;
  std::vector<Real> sum(numbers.size(), Real{0});
  if (r > 0) {
    transport.post(
        {.lane = Lane::sums, .from = r - 1, .incoming = std::as_writable_bytes(std::span(sum))});
    transport.wait(transport.commit());
  }
  for (std::size_t n = 0; n < sum.size(); ++n) sum[n] = sum[n] + numbers[n];
  if (r + 1 < P) {
    transport.post({.lane = Lane::sums, .to = r + 1, .outgoing = std::as_bytes(std::span(sum))});
    transport.wait(transport.commit());
  }
  numbers = std::move(sum);
}

/// One rank's backward pass. Precondition: the buffers kept the own block. Gradients that are sums
/// over all ranks (sinks, a bias without rows) are complete on the last rank only.
template <class Real>
RankGradients<Real> ring_backward(Transport& transport, const Journeys& journeys, Tile<Real>& tile,
                                  const reference::ShardAnswer<Real>& answer, BlockBuffers& buffers,
                                  reference::Trace& trace) {
  BlockPasser<Real> blocks(transport, journeys, tile, buffers, trace);
  const Index r = transport.rank();
  tile.begin_backward(answer);
  transport.at_step(0);
  GradientPasser<Real> gradients(transport, journeys, tile, trace);  // B1
  for (Index t = 0; t < journeys.ranks(); ++t) {                     // B2
    transport.at_step(t);
    blocks.post(t);  // B3
    const Index origin = blocks.origin(t);
    if (journeys.meets(r, origin)) {
      tile.gradient(origin, blocks.block(t), gradients.part(t));  // B4
      trace.push_back({t, r, reference::Action::gradient, origin, -1, 0, 0});
    } else {
      std::ranges::fill(gradients.part(t), Real{0});
    }
    gradients.add_arrived(t);  // B5
    gradients.post(t);         // B6
    blocks.wait(t);            // B7
  }
  RankGradients<Real> result{tile.finish_backward(), gradients.wait_home(), {}};  // B8
  const auto keys =
      result.dk.begin() +
      static_cast<std::ptrdiff_t>(row_count(tile.mine().keys, r) * tile.mine().problem.batches *
                                  tile.mine().problem.kv_heads * tile.mine().problem.head_dim);
  result.dv.assign(keys, result.dk.end());
  result.dk.erase(keys, result.dk.end());
  sum_down_the_chain(transport, result.queries.dsinks);
  if (!bias_has_rows(tile.mine().problem)) {
    sum_down_the_chain(transport, result.queries.dbias.data);
  }
  return result;
}

}  // namespace ringproof::mpi
