// The machine that the chapter's times are computed for, and the picture of one rank's time on it.
#pragma once

#include "mpi/simgrid/cost_model.hpp"

namespace ringproof::tutorials {

constexpr mpi::Index kRanks = 4;
/// 10^12 operations and 10^10 bytes a second, as in docs/performance.md.
constexpr mpi::Machine kMachine{.flops = 1e12, .bandwidth = 1e10, .latency = 1e-6};

inline mpi::Shape shape_of(mpi::Index rows) { return {.rows_per_rank = rows, .width = 64}; }

void print_figure();

}  // namespace ringproof::tutorials
