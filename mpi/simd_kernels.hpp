// The arithmetic of the vector tile as plain functions, each compiled for every SIMD target of the
// platform and chosen at run time. They know tiles of numbers and nothing of masks or rings.
// A tile is kQueries query rows, kept transposed (the rows of a tile lie side by side in a vector),
// against at most kKeys keys. One product routine serves all seven products of both passes.
#pragma once

#include <cstdint>

#include "reference/number.hpp"

namespace ringproof::mpi {

using reference::Index;

constexpr Index kQueries = 48;  // query rows of a tile: 1, 3 or 6 passes of the registers
constexpr Index kKeys = 96;     // keys of a tile: a multiple of 6 and 8, the rows of a pass
constexpr Index kColumns = 16;  // arrays of columns are padded to a multiple of the widest vector

constexpr Index padded_columns(Index columns) {
  return (columns + kColumns - 1) / kColumns * kColumns;
}

/// The factor that is broadcast: a(r, t) lies at data[r * row + t * step].
struct Broadcast {
  const float* data;
  Index row, step;
};

/// Numbers in rows, aligned; `row` numbers from one row to the next.
template <class Float>
struct Rows {
  Float* data;
  Index row;
};

/// c[r][n] = sum over t of a(r, t) b[t][n].
struct Product {
  Broadcast a;
  Rows<const float> b;         // [depth, columns]
  Rows<float> c;               // [rows, columns]
  Index rows, depth, columns;  // columns: a multiple of kColumns
};

/// What becomes of what stood in c: it is replaced, added to, or scaled by alpha[n] and added to.
enum class Into { replace, add, rescale };
void multiply(const Product& product, Into into, const float* alpha = nullptr);

/// The states of a tile. m is the largest x so far, in the unit of the scores that come in.
struct TileState {
  float* m;  // [kQueries]
  float* l;  // [kQueries]
  float* o;  // [Dv, kQueries]
};

/// Folds scores x [keys, kQueries] and values [keys, Dv] into the states, (6) and (7), with weights
/// 2^(factor (x - m)); x is overwritten by the weights. -infinity: not seen.
void absorb_tile(const TileState& state, float* x, Index keys, float factor,
                 const float* values,  // [keys, Dv]
                 Index value_dim);

/// The probabilities of a tile (21): 2^(factor x - shift) with shift = LSE in units of log 2, in
/// place of x [keys, kQueries].
void probabilities_tile(float* x, Index keys, float factor,
                        const float* shift);  // [kQueries]

/// dS = P (dP - delta) (23), in place of dP [keys, kQueries].
void score_gradients_tile(float* dP, const float* P, Index keys,
                          const float* delta);  // [kQueries]

/// Sixteen-bit numbers as floats, exactly.
enum class Sixteen { bf16, f16 };
void widen(Sixteen type, const std::uint16_t* from, Index count, float* to);  // [count]

/// The name of the target in use, and all that this machine has: tests compare them.
const char* simd_target();

}  // namespace ringproof::mpi
