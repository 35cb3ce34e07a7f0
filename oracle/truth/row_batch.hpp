// The memory of up to four rows that are computed together, and of the KV head they read: plain
// arrays in the layout of the kernels. No arithmetic here.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/truth/aligned_array.hpp"
#include "oracle/truth/dot_parts.hpp"
#include "oracle/truth/exp_table.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

inline constexpr int kTileKeys = 64;  // keys whose weighted values share one grid constant
inline constexpr int kSlices = 3;     // into which weights are cut (Lemma 15b)
inline constexpr int kFewestSliceBits = 16, kMostSliceBits = 26;  // of each but the last
inline constexpr int kBlockTiles = 4;  // tiles between two updates of a row's reference

/// K and V of one KV head. Row j of V is followed by a column of ones, so that the denominator is
/// one more weighted sum, with the same error bound; keys behind the last have zeros there too.
struct PackedHead {
  std::int64_t keys = 0, tiles = 0, head_dim = 0, value_dim = 0;
  std::int64_t stride = 0;  // of V: > value_dim, a multiple of 8, no multiple of 64
  AlignedArray k;           // [4 tiles, D, 16]
  AlignedArray v;           // [64 tiles, stride]
  AlignedArray v_max;       // [tiles, stride] largest magnitude of the column in the tile
  AlignedArray v_key_max;   // [64 tiles] largest magnitude of the key's values
  std::vector<std::uint8_t> key_finite, key_exact;  // [Nk]
  std::vector<int> slice_bits;  // [tiles] where weights are cut; 0: V has too many bits for it
  bool all_finite = true;
  bool exact = true;            // every decoded number is the exact one
  bool exact_products = false;  // q k has at most 53 bits
  double smallest_k = 0;        // smallest nonzero magnitude
  AlignedArray k_limit;         // [64 tiles] 2^53 units of the key (unit_of.hpp)
  KeyParts k_parts;
  bool cut = false;  // k_parts is filled
  Precision precision = Precision::fast;
  Certified scale;  // hi + lo: the scale, also where it is no binary64 number
};

/// What the kernels keep of one row, and where its answer goes.
struct BatchRow {
  RowTruth* truth = nullptr;          // null: a row that only fills the batch
  std::int64_t offset = 0;            // key of the batch's first tile minus first key of the row
  const double* alibi_low = nullptr;  // [keys] what truth->alibi lacks of slope times distance
  double dot_underflow = 0;           // what underflow can hide from a sum of |q k|
  double q_unit = 1;                  // every number of q is a multiple of this power of two
  double sink = 0;
  bool has_sink = false;
  std::int64_t tiles = 0;   // tiles in which the row sees a key, so far
  double reference = 0;     // m: weights are exp(s - m); the largest score so far
  double score_excess = 0;  // largest part of a score's error beyond 2^-53 |score|
  bool failed = false;      // some bound does not hold: the row's radius is infinite
  // Of exp(s - m) over keys and sink, for the backward pass.
  double denominator_hi = 1, denominator_lo = 0, denominator_error = 0;
};

/// Working memory of one thread: rows that are computed together, block of keys by block of keys. A
/// block is kBlockTiles tiles; of each tile and row it holds three words of 64 numbers, which are
/// overwritten as the block proceeds (ScoreWord, WeightWord) and again by the next block, unless
/// the backward pass needs them.
struct RowBatch {
  const PackedHead* head = nullptr;
  const ExpTable* table = nullptr;
  int rows = 0;               // 1, or even: the last may only fill the batch
  bool keep_weights = false;  // the words of all tiles stay
  std::int64_t first_tile = 0, tiles = 0;
  double softcap = 0;
  BatchRow row[HeadTruth::kRows];
  AlignedArray q, q_magnitude;  // [D, rows]
  QueryParts q_parts;           // if the head is cut
  AlignedArray words;           // [kBlockTiles or tiles, 3, rows, 64]
  AlignedArray factors;  // [tiles, 3, rows, 64] derivative of the softcap, if weights are kept
  std::vector<std::uint8_t> visible;  // [tiles, rows, 64]
  AlignedArray mass, mass_error;      // [kBlockTiles, rows] sum of weights; of their error bounds
  AlignedArray relative_error;        // [tiles, rows] largest one of a weight, if they are kept
  AlignedArray sums;                  // [4, rows, stride] of every column (ColumnSum)
  AlignedArray slices;                // [rows, 3, 64] the weights of a tile, cut
  AlignedArray seen_max;              // [rows, stride] as v_max, over the keys the row sees
  AlignedArray reference;             // [blocks, rows] the reference of each block's weights

  std::int64_t blocks() const { return (tiles + kBlockTiles - 1) / kBlockTiles; }
  double* word(std::int64_t tile, int which, int r) const {
    const std::int64_t place = keep_weights ? tile : tile % kBlockTiles;
    return words.data() + ((place * 3 + which) * rows + r) * kTileKeys;
  }
  double* factor_word(std::int64_t tile, int which, int r) const {
    return factors.data() + ((tile * 3 + which) * rows + r) * kTileKeys;
  }
  std::int64_t mass_index(std::int64_t tile, int r) const { return tile % kBlockTiles * rows + r; }
  const std::uint8_t* visible_tile(std::int64_t tile, int r) const {
    return visible.data() + (tile * rows + r) * kTileKeys;
  }
};

/// Scores, weights, sums, quotients and their radius, on the SIMD target in use: fills dot,
/// abs_dot, capped, score, score_radius, log_p, p, max_score, lse and out of every row
/// (row_kernel.cpp).
void compute_batch(RowBatch&);

/// The functions behind it, for tests.
void exp_dd_array(const double* hi, const double* lo,
                  std::int64_t count,               // [count], count % 8 == 0
                  double* out_hi, double* out_lo);  // [count]
void tanh_dd_array(const double* hi, const double* lo, std::int64_t count, double* out_hi,
                   double* out_lo);

}  // namespace ringproof::oracle
