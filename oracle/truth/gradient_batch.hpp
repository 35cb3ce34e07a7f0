// The memory of a batch of rows in the backward pass, and of the KV head laid out for it: plain
// arrays in the layout of the kernels. No arithmetic here.
#pragma once

#include "oracle/truth/backward.hpp"
#include "oracle/truth/gradient_sums.hpp"
#include "oracle/truth/row_batch.hpp"

namespace ringproof::oracle {

/// K by rows (for dQ) and V by columns (for dP): PackedHead has them the other way round.
struct PackedGradients {
  std::int64_t stride = 0;        // of K
  AlignedArray k;                 // [64 tiles, stride]
  AlignedArray k_max;             // [tiles, stride] largest magnitude of the column in the tile
  AlignedArray k_key_max;         // [64 tiles] largest magnitude of the key
  AlignedArray v;                 // [4 tiles, Dv, 16]
  std::vector<double> v_largest;  // [Dv] over all keys
  double k_largest = 0;
  double smallest_v = 0;        // smallest nonzero magnitude
  bool exact_products = false;  // dout v has at most 53 bits
};

/// What the kernels keep of one row.
struct GradientRow {
  const RowTruth* truth = nullptr;
  RowGradients* gradients = nullptr;    // null: the row takes no part, its weights are zeros
  Certified shift;                      // dL_i - D_i
  Certified lse;                        // isolated: the given L_i
  double dp_underflow = 0;              // what underflow can hide from a sum of |dO v|
  double dp_excess = 0, ds_excess = 0;  // largest part of an error beyond 2^-53 of the number
};

/// Working memory of one thread. Words of a tile: [kGradientWords, rows, 64].
struct GradientBatch {
  RowBatch* forward = nullptr;
  const PackedGradients* head = nullptr;
  GradientSums::Impl* sums = nullptr;  // null: no dk, dv
  bool isolated = false;
  GradientRow row[HeadTruth::kRows];
  AlignedArray dout, dout_magnitude;  // [Dv, rows]
  AlignedArray dout_rows, q_rows;     // [rows, stride of dv, of dk]
  AlignedArray dout_max, q_max;       // [stride of dv, of dk] over the rows that take part
  AlignedArray words;                 // [kGradientWords, rows, 64]
  AlignedArray key_sums;              // [kKeySums, 64] over the rows of the batch
  AlignedArray mass, mass_error;      // [rows] of dS in the tile: sum of magnitudes, of errors
  AlignedArray seen_max;              // [rows, stride of K]
  AlignedArray dq;                    // [4, rows, stride of K] (ColumnSum)
  AlignedArray weight_factor;         // [blocks, 3, rows] p over weight: hi, lo, relative error

  double* word(int which, int r) const {
    return words.data() + (which * forward->rows + r) * kTileKeys;
  }
  double* factor_of(std::int64_t block, int which, int r) const {
    return weight_factor.data() + (block * 3 + which) * forward->rows + r;
  }
};

enum GradientWord { kDpHigh, kDpLow, kDpMagnitude, kPHigh, kPLow, kDsHigh, kDsLow };
inline constexpr int kGradientWords = 7;
enum KeySum { kPMass, kPError, kDsMass, kDsError };
inline constexpr int kKeySums = 4;

/// dP, dS and their errors; fills dp, abs_dp, p, factor, ds, dbias, dq, p_sink and dsink of every
/// row, and adds to dk and dv (gradient_kernel.cpp).
void compute_gradients(GradientBatch&);

}  // namespace ringproof::oracle
