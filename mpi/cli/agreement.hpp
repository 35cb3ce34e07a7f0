// What ranks tell each other apart from blocks: that all is well, that they read the same case and
// were given the same options.
// Collective calls: every rank makes them, in the same order.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "reference/cli/answer_file.hpp"

namespace ringproof::mpi {

/// "rank 2: TEXT" of the first rank whose text is not empty, on every rank; empty if all are.
std::string first_complaint(MPI_Comm communicator, const std::string& text);

/// A digest of everything that must be the same on all ranks: spec, names, types and shapes, all
/// rows of what describes the problem, and a sample of the numbers that ranks read apart.
std::uint64_t digest_of(const reference::CaseInput& input);

/// A digest of a text.
std::uint64_t digest_of(std::string_view text);

/// "rank 2: COMPLAINT" of the first rank whose digest is not that of rank 0; empty if all agree.
std::string disagreement(MPI_Comm communicator, std::uint64_t digest, const std::string& complaint);

}  // namespace ringproof::mpi
