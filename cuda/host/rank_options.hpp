// How the tier's ranks run on the host, and what they did: set and read by tests and the program.
#pragma once

#include "cuda/host/ranks.hpp"

namespace ringproof::cuda_host {

RankOptions& rank_options();

/// Of the last ring.
RankCounts& rank_counts();

}  // namespace ringproof::cuda_host
