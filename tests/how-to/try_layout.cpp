// The layout "paired": docs/how-to/add-a-layout.md, tried on a copy that has its patches.
#include <iostream>

#include "reference/cli/schedule.hpp"
#include "reference/dense.hpp"
#include "reference/ring.hpp"

using namespace ringproof::reference;

/// (owner, slot) and global_row are inverse to each other, and every row is owned once.
bool inverse(const Sharding& sharding) {
  Index owned = 0;
  for (Index rank = 0; rank < sharding.ranks; ++rank) owned += row_count(sharding, rank);
  bool right = owned == sharding.rows;
  for (Index row = 0; row < sharding.rows; ++row) {
    const Index rank = owner(sharding, row), place = slot(sharding, row);
    right = right && place < row_count(sharding, rank) && global_row(sharding, rank, place) == row;
  }
  return right;
}

/// With scores of 0 and whole values all sums are exact: the ring is the dense answer, bit for bit.
bool ring_is_dense(Index rows, Index ranks) {
  const std::vector<double> zeros(rows, 0.0);
  std::vector<double> values(rows);
  for (Index j = 0; j < rows; ++j) values[j] = static_cast<double>(j);
  Problem<double> problem{.queries = rows, .keys = rows, .head_dim = 1, .value_dim = 1};
  problem.q = problem.k = row_major<double>(zeros, {1, 1, rows, 1});
  problem.v = row_major<double>(values, {1, 1, rows, 1});
  problem.causal = true;
  Trace trace;
  return ring_attention(problem, {ranks, Layout::paired}, trace).out ==
         dense_attention(problem).out;
}

int main() {
  for (Index rows = 1; rows <= 40; ++rows) {
    for (Index ranks = 1; ranks <= 7; ++ranks) {
      if (!inverse({Layout::paired, rows, ranks}) || !ring_is_dense(rows, ranks)) {
        return std::cout << "wrong for N = " << rows << ", P = " << ranks << "\n", 1;
      }
    }
  }
  const PositionMask causal{.causal = true};
  std::cout << schedule_text(make_schedule({Layout::paired, 13, 3}, Direction::down, causal, 512));
}
