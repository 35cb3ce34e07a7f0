// All tiles, and which one a rank gets. In binary64 there is the scalar tile only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "mpi/tile_simd.hpp"

namespace ringproof::mpi {

enum class TileKind { scalar, simd };

struct TileChoice {
  TileKind kind = TileKind::simd;
  int threads = 1;                   // of one rank; the scalar tile has one
  std::optional<Sixteen> wire = {};  // the 16-bit type of all k and v, if they have one
};

template <class Real>
std::unique_ptr<Tile<Real>> make_tile(const TileChoice& choice, RankProblem<Real> mine);

extern template std::unique_ptr<Tile<float>> make_tile(const TileChoice&, RankProblem<float>);
extern template std::unique_ptr<Tile<double>> make_tile(const TileChoice&, RankProblem<double>);

}  // namespace ringproof::mpi
