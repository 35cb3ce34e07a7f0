// The layout "paired": docs/how-to/add-a-layout.md, tried on a copy that has its patches.
#include <iostream>

#include "reference/balance.hpp"

using namespace ringproof::reference;

int main() {
  for (Index rows = 0; rows <= 40; ++rows) {
    for (Index ranks = 1; ranks <= 7; ++ranks) {
      const Sharding sharding{Layout::paired, rows, ranks};
      Index owned = 0;
      for (Index rank = 0; rank < ranks; ++rank) owned += row_count(sharding, rank);
      bool inverse = owned == rows;
      for (Index row = 0; row < rows; ++row) {
        inverse = inverse &&
                  global_row(sharding, owner(sharding, row), slot(sharding, row)) == row &&
                  slot(sharding, row) < row_count(sharding, owner(sharding, row));
      }
      if (!inverse) return std::cout << "wrong for N = " << rows << ", P = " << ranks << "\n", 1;
    }
  }
  const PositionMask causal{.causal = true};
  const Workload work = workload({Layout::paired, 64, 4}, causal, Direction::down);
  std::cout << "rows and slots are inverse for N <= 40, P <= 7; causal, 64 rows on 4 ranks: idle "
            << 100 * work.idle_fraction() << " %\n";
}
