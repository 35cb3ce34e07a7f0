// Choosing a tile on the command line, and the preset whose arithmetic it has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "mpi/tiles.hpp"
#include "reference/cli/answer_file.hpp"

namespace ringproof::mpi {

/// --tile and --threads.
void add_tile_options(CLI::App& app, TileChoice& choice);

/// The 16-bit type that holds all of k and v, so that blocks may travel in it.
std::optional<Sixteen> wire_type(const oracle::Problem& problem);

/// The preset of a tile's arithmetic that contract_for() takes as its base; empty: the scalar
/// tier's own.
std::string tile_preset(const TileChoice& choice, oracle::DType output);

}  // namespace ringproof::mpi
