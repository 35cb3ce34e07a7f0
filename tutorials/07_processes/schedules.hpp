// Small programs for ranks that are threads: a ring as it should be, and ways to get it wrong. Each
// says what became of it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mpi/transport_local.hpp"

namespace ringproof::tutorials {

using mpi::Index;

/// A block that holds nothing but its owner's number.
using Block = std::array<Index, 4>;

/// The blocks that each rank had in hand, step by step: [P][P].
using Seen = std::vector<std::vector<Index>>;

/// Passes blocks round a ring with one rank's verbs; returns what it saw.
std::vector<Index> pass_round(mpi::Transport& transport);

/// Runs a body on P ranks; returns "ok", or what the network said.
std::string outcome(Index ranks, const mpi::DebugOptions& debug,
                    const std::function<void(mpi::Transport&)>& body);

void print_ring();
void print_misuse();
void print_deadlock();
void print_death();

}  // namespace ringproof::tutorials
