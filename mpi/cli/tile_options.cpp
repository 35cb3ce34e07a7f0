// Tiles on the command line (tile_options.hpp).
#include "mpi/cli/tile_options.hpp"

#include "reference/cli/usage.hpp"

namespace ringproof::mpi {

void add_tile_options(CLI::App& app, TileChoice& choice) {
  reference::add_choice(app, "--tile", choice.kind,
                        "how a rank computes, by default simd in binary32",
                        {{"simd", TileKind::simd}, {"scalar", TileKind::scalar}});
  app.add_option("--threads", choice.threads, "threads of one rank (simd)")
      ->check(CLI::Range(1, 1024));
}

std::optional<Sixteen> wire_type(const oracle::Problem& problem) {
  if (problem.k_scale.tensor || problem.v_scale.tensor || problem.k.dtype != problem.v.dtype) {
    return std::nullopt;
  }
  if (problem.k.dtype == oracle::DType::bf16) return Sixteen::bf16;
  if (problem.k.dtype == oracle::DType::f16) return Sixteen::f16;
  return std::nullopt;
}

std::string tile_preset(const TileChoice& choice, oracle::DType output) {
  // 16-bit answers: bf16-io and fp16-io already allow what the tile does.
  return choice.kind == TileKind::simd && output == oracle::DType::f32 ? "fp32-simd+ftz" : "";
}

}  // namespace ringproof::mpi
