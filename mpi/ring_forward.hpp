// The document's inner loop on one rank of a real network. L1 ... L8 are those of
// reference/ring.hpp; here the transfer of L4 goes on while L5 and L6 compute (C8).
#pragma once

#include "mpi/block_buffers.hpp"
#include "mpi/journey.hpp"
#include "mpi/tile.hpp"
#include "mpi/transport.hpp"
#include "reference/trace.hpp"

namespace ringproof::mpi {

/// Bytes of the largest block that comes by.
template <class Real>
std::size_t largest_block(const Tile<Real>& tile, Index ranks) {
  std::size_t bytes = 0;
  for (Index origin = 0; origin < ranks; ++origin) {
    bytes = std::max(bytes, tile.block_bytes(origin));
  }
  return bytes;
}

/// Passes blocks from hand to hand, in either pass.
template <class Real>
class BlockPasser {
 public:
  BlockPasser(Transport& transport, const Journeys& journeys, const Tile<Real>& tile,
              BlockBuffers& buffers, reference::Trace& trace)
      : transport_(transport), journeys_(journeys), tile_(tile), buffers_(buffers), trace_(trace) {}

  Index origin(Index step) const { return journeys_.block_at(step, transport_.rank()); }
  std::span<std::byte> block(Index step) {
    return buffers_.at(step).first(tile_.block_bytes(origin(step)));
  }

  /// Begins to pass on the block of a step and to receive the next one, as far as anybody ahead
  /// wants them.
  void post(Index step) {
    arrives_ = false;
    batch_ = 0;
    if (step + 1 >= journeys_.ranks()) return;
    const Index r = transport_.rank(), P = journeys_.ranks();
    Transfer transfer{.lane = Lane::blocks};
    if (journeys_.block_moves(origin(step), step)) {
      transfer.to = reference::send_to(r, P, journeys_.direction());
      transfer.outgoing = block(step);
      trace_.push_back({step, r, reference::Action::post, origin(step), transfer.to,
                        static_cast<Index>(transfer.outgoing.size()), 0});
    }
    arrives_ = journeys_.block_moves(origin(step + 1), step);
    if (arrives_) {
      transfer.from = reference::receive_from(r, P, journeys_.direction());
      transfer.incoming = block(step + 1);
    }
    if (transfer.to < 0 && transfer.from < 0) return;
    transport_.post(transfer);
    batch_ = transport_.commit();
  }

  void wait(Index step) {
    transport_.wait(batch_);
    if (!arrives_) return;
    const Index r = transport_.rank();
    const Index from = reference::receive_from(r, journeys_.ranks(), journeys_.direction());
    trace_.push_back({step, r, reference::Action::wait, origin(step + 1), from,
                      static_cast<Index>(block(step + 1).size()), 0});
  }

 private:
  Transport& transport_;
  const Journeys& journeys_;
  const Tile<Real>& tile_;
  BlockBuffers& buffers_;
  reference::Trace& trace_;
  Batch batch_ = 0;
  bool arrives_ = false;
};

/// One rank's forward pass. The tile's states are empty (L1). Afterwards the buffers still hold the
/// rank's own block if they keep it.
template <class Real>
reference::ShardAnswer<Real> ring_forward(Transport& transport, const Journeys& journeys,
                                          Tile<Real>& tile, BlockBuffers& buffers,
                                          reference::Trace& trace) {
  BlockPasser<Real> passer(transport, journeys, tile, buffers, trace);
  const Index r = transport.rank();
  tile.pack_block(passer.block(0));               // L2
  for (Index t = 0; t < journeys.ranks(); ++t) {  // L3
    transport.at_step(t);
    passer.post(t);  // L4
    const Index origin = passer.origin(t);
    if (journeys.meets(r, origin)) {
      const Index pairs = tile.absorb(origin, passer.block(t));  // L5, L6
      trace.push_back({t, r, reference::Action::compute, origin, -1, 0, pairs});
    }
    passer.wait(t);  // L7
  }
  return tile.finish();  // L8
}

}  // namespace ringproof::mpi
