// The class behind tile_simd.hpp; only its two source files include this.
#pragma once

#include <atomic>

#include "mpi/simd_data.hpp"
#include "mpi/tile_simd.hpp"

namespace ringproof::mpi {

using namespace reference;
using Bytes = std::span<const std::byte>;

/// Query tiles that share one reading of a tile of keys.
constexpr Index kTilesOfTask = 8;

/// What one thread needs beside the shared data.
struct Scratch {
  AlignedFloats widened_k, widened_v;      // [kKeys, D], [kKeys, Dv]
  AlignedFloats x, dP;                     // [kKeys, kQueries]
  AlignedFloats dk, dv;                    // [kKeys, padded D], [kKeys, padded Dv]
  std::vector<float> finite_v;             // [kKeys, Dv], rarely used
  const float *k = nullptr, *v = nullptr;  // of the tile of keys in hand
};

class SimdTile final : public Tile<float> {
 public:
  SimdTile(RankProblem<float> mine, int threads, std::optional<Sixteen> wire);

  const RankProblem<float>& mine() const override { return mine_; }
  std::size_t block_bytes(Index origin) const override {
    return gradient_size(origin) * wire_.width();
  }
  void pack_block(std::span<std::byte> block) override;
  Index absorb(Index origin, Bytes block) override;
  ShardAnswer<float> finish() override;
  void begin_backward(const ShardAnswer<float>& answer) override;
  void gradient(Index origin, Bytes block, std::span<float> part) override;
  QueryGradient<float> finish_backward() override;

 private:
  /// A tile of queries of one head, and one of keys.
  struct Pair {
    Head head;
    const RowTile *queries, *keys;
    Index key_count;  // of the tile's keys; the last ones may be ahead of every query
    Index tile;       // number of the query tile among all of the rank
    Index origin;     // of the block
    Coverage coverage;
  };

  /// A tile of keys of one KV head, counted through all batches.
  struct KeyTask {
    Index kv, origin;
    const RowTile* keys;
  };

  Index tiles_per_head() const { return static_cast<Index>(query_tiles_[0].size()); }
  Index tile_number(const Head& head, Index n) const {
    return (head.b * p().heads + head.h) * tiles_per_head() + n;
  }
  const Problem<float>& p() const { return mine_.problem; }
  std::vector<RowTile> key_tiles(Index b, Index origin) const;
  Pair pair_of(const Head& head, Index n, const RowTile& keys, Index origin) const;
  void read_keys(Bytes block, Index origin, Index kv, const RowTile& keys, Scratch& scratch) const;
  Index scores_of(const Pair& pair, Scratch& scratch);
  Index absorb_pair(const Pair& pair, Scratch& scratch);
  Index hide(const Pair& pair, float* x) const;
  Index hide_by_position(const Pair& pair, float* x) const;
  void pass_score(const Pair& pair, float* dP, const float* dot_products);
  void gradient_of_keys(const KeyTask& task, const std::atomic<Index>* before,
                        std::atomic<Index>& done, Scratch& scratch);
  void gradient_of_pair(const Pair& pair, Scratch& scratch);
  void gradient_pair_by_pair(const Pair& pair, Scratch& scratch);

  RankProblem<float> mine_;
  Wire wire_;
  int threads_;
  Index padded_D_, padded_Dv_;
  PositionRules rules_;
  bool natural_;                                   // x is the score, not the product
  bool looked_at_;                                 // every pair of a tile has a say of its own
  float factor_;                                   // log2 of a weight by x
  std::vector<std::vector<RowTile>> query_tiles_;  // [B]
  AlignedFloats q_, m_, l_, o_;                    // [tiles, D | 1 | 1 | Dv, kQueries]
  std::vector<Scratch> scratch_;                   // [threads]

  // Backward only.
  AlignedFloats dout_, shift_, delta_, dq_;  // [tiles, Dv | 1 | 1 | D, kQueries]
  AlignedFloats q_rows_, dout_rows_;         // [tiles, kQueries, padded D | padded Dv]
  std::vector<float> lse_, row_delta_;       // [B, H, n]
  std::vector<std::uint8_t> not_finite_;     // [tiles]: some q or dout is not
  BiasGradient<float> dbias_;
};

}  // namespace ringproof::mpi
