// Ranks as threads of one process, so that a ring can be tested without mpirun and a deadlock is
// seen the moment it happens, not after a timeout.
//
//   run_ranks(4, {.rendezvous = true}, [](Transport& transport) { ... });
#pragma once

#include <functional>

#include "mpi/transport.hpp"

namespace ringproof::mpi {

/// Runs `body` once a rank, each in its own thread, on a network between them. If a rank throws,
/// the others stop at their next wait, and the failure is thrown on.
/// When all ranks that are left wait for each other the
/// failure is a deadlock, and says who waits for whom.
void run_ranks(Index ranks, const DebugOptions& debug, const std::function<void(Transport&)>& body);

}  // namespace ringproof::mpi
