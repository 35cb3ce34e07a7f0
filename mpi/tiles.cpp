// The registry (tiles.hpp).
#include "mpi/tiles.hpp"

#include "mpi/tile_scalar.hpp"

namespace ringproof::mpi {

template <class Real>
std::unique_ptr<Tile<Real>> make_tile(const TileChoice& choice, RankProblem<Real> mine) {
  if constexpr (std::same_as<Real, float>) {
    if (choice.kind == TileKind::simd) {
      return make_simd_tile(std::move(mine), choice.threads, choice.wire);
    }
  }
  return make_scalar_tile(std::move(mine));
}

template std::unique_ptr<Tile<float>> make_tile(const TileChoice&, RankProblem<float>);
template std::unique_ptr<Tile<double>> make_tile(const TileChoice&, RankProblem<double>);

}  // namespace ringproof::mpi
