// What a rank does with its queries and one block of keys; how it does it is the tile's business.
// A tile owns the rank's numbers and states, and decides in which format a block travels. The ring
// (ring_forward.hpp, ring_backward.hpp) owns the buffers and sees bytes.
// Gradients of a block travel as numbers of the type computed in, dk before dv.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mpi/rank_problem.hpp"
#include "reference/backward.hpp"

namespace ringproof::mpi {

template <class Real>
class Tile {
 public:
  virtual ~Tile() = default;

  /// The rank's part of the problem; its k and v may be gone after pack_block.
  virtual const RankProblem<Real>& mine() const = 0;

  /// Bytes of the block that a rank owns, on the wire.
  virtual std::size_t block_bytes(Index origin) const = 0;
  /// Writes the rank's own block. Called once, before everything else.
  virtual void pack_block(std::span<std::byte> block) = 0;
  /// Folds a block into the states; returns the number of visible pairs, over all heads.
  virtual Index absorb(Index origin, std::span<const std::byte> block) = 0;
  /// The rank's rows. Called once, after the last block.
  virtual reference::ShardAnswer<Real> finish() = 0;

  /// Begins the backward pass from the answer that finish() gave.
  virtual void begin_backward(const reference::ShardAnswer<Real>& answer) = 0;
  /// Writes the rank's part of the gradient of a block, and adds to the rank's own gradients.
  virtual void gradient(Index origin, std::span<const std::byte> block,
                        std::span<Real> part) = 0;  // [gradient_size(origin)]
  virtual reference::QueryGradient<Real> finish_backward() = 0;

  /// Numbers in the gradient of the block that a rank owns.
  std::size_t gradient_size(Index origin) const {
    const auto& problem = mine().problem;
    return static_cast<std::size_t>(row_count(mine().keys, origin) * problem.batches *
                                    problem.kv_heads * (problem.head_dim + problem.value_dim));
  }
};

}  // namespace ringproof::mpi
