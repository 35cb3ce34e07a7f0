// Flash attention inside a rank: tiles of queries against tiles of keys in vector registers, on as
// many threads as wanted; any mask, both passes. Numbers are binary32 whatever the inputs; blocks
// with 16-bit numbers travel as such. Arithmetic: docs/contract.md under "fp32-simd".
//   scores x = q.k in registers; weights 2^(factor x - factor m), factor = scale log2(e), unless a
//   softcap, a bias or ALiBi stands between product and score: then x is the score, factor log2(e).
// Every tile of keys is summed from zero before it joins the sums, which halves the error of a long
// chain and costs little.
#pragma once

#include <optional>

#include "mpi/simd_kernels.hpp"
#include "mpi/tile.hpp"

namespace ringproof::mpi {

/// `wire`: the 16-bit type that holds every k and v of the problem; none: they travel as floats.
std::unique_ptr<Tile<float>> make_simd_tile(RankProblem<float> mine, int threads,
                                            std::optional<Sixteen> wire);

}  // namespace ringproof::mpi
