// The reference's own arithmetic as a tile, pair by pair: what the other tile is compared with.
// At the same P and layout its answers equal those of reference/ring.hpp bit for bit.
#pragma once

#include "mpi/tile.hpp"

namespace ringproof::mpi {

template <class Real>
std::unique_ptr<Tile<Real>> make_scalar_tile(RankProblem<Real> mine);

extern template std::unique_ptr<Tile<float>> make_scalar_tile(RankProblem<float>);
extern template std::unique_ptr<Tile<double>> make_scalar_tile(RankProblem<double>);

}  // namespace ringproof::mpi
