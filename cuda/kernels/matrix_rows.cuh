// What a warp does with its sixteen query rows on the matrix units: states, scores, weights, sums.
// Steps 5 and 6 share it; they differ in how tiles come into shared memory and how they lie there.
// A lane holds, of every 16 x 8 result, two neighbouring columns (pair, pair + 1) of two rows
// (group, group + 8): PTX's layout of fragments for m16n8k16.
#pragma once

#include "cuda/device/instructions.cuh"
#include "cuda/kernels/ladder.cuh"

namespace ringproof::cuda {

inline constexpr int kMatrixThreads = 128;  // four warps
inline constexpr int kMatrixRows = 64;      // sixteen query rows a warp
inline constexpr int kMatrixKeys = 64;      // keys in a tile

/// Where this thread stands in its block and its warp.
struct Place {
  int batch, head, first_query, warp_row, lane, group, pair;
};

__device__ __forceinline__ Place place_of_thread() {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  return {static_cast<int>(blockIdx.z),
          static_cast<int>(blockIdx.y),
          static_cast<int>(blockIdx.x) * kMatrixRows,
          thread / 32 * 16,
          lane,
          lane / 4,
          lane % 4 * 2};
}

/// The states of the lane's two rows, and the rows themselves.
template <int W>
struct LaneRows {
  float m[2], l[2], o[W / 8][4];
  Row row[2];
  std::size_t at[2];  // of the state in memory
  bool here[2];       // false behind the last query
};

/// What else a tile of keys needs in shared memory beside keys and values.
struct TileFacts {
  Row row[kMatrixKeys];
  int spoilt[2 * kMatrixKeys];  // halves of values that held infinities or NaN, see clean_values
  int sight[kMatrixThreads];    // of the tiles that come next, as Sight
};

template <int W, class Element>
__device__ __forceinline__ void load_states(LaneRows<W>& rows, const BlockArguments<Element>& block,
                                            const Place& place) {
  RINGPROOF_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int i = place.first_query + place.warp_row + place.group + 8 * r;
    rows.here[r] = i < block.queries;
    rows.row[r] = rows.here[r] ? block.query_rows.at(place.batch, i) : Row{};
    rows.at[r] = block.query_row(place.batch, place.head, rows.here[r] ? i : 0);
    rows.m[r] = rows.here[r] ? block.m[rows.at[r]] : minus_infinity();
    // The four lanes of a row each add up their own columns; one begins with what was there.
    rows.l[r] = rows.here[r] && place.pair == 0 ? block.l[rows.at[r]] : 0;
    RINGPROOF_UNROLL
    for (int n = 0; n < W / 8; ++n) {
      const float* o = block.o + rows.at[r] * W + n * 8 + place.pair;
      rows.o[n][2 * r] = rows.here[r] ? o[0] : 0;
      rows.o[n][2 * r + 1] = rows.here[r] ? o[1] : 0;
    }
  }
}

template <int W, class Element>
__device__ __forceinline__ void store_states(LaneRows<W>& rows,
                                             const BlockArguments<Element>& block,
                                             const Place& place) {
  RINGPROOF_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows.l[r] += __shfl_xor_sync(0xffffffffU, rows.l[r], 1);
    rows.l[r] += __shfl_xor_sync(0xffffffffU, rows.l[r], 2);
    if (!rows.here[r]) continue;
    if (place.pair == 0) {
      block.m[rows.at[r]] = rows.m[r];
      block.l[rows.at[r]] = rows.l[r];
    }
    RINGPROOF_UNROLL
    for (int n = 0; n < W / 8; ++n) {
      float* o = block.o + rows.at[r] * W + n * 8 + place.pair;
      o[0] = rows.o[n][2 * r];
      o[1] = rows.o[n][2 * r + 1];
    }
  }
}

/// The row of an 8 x 8 matrix that this lane names when four of them, two by two, cover 16 rows and
/// 16 columns: matrices 1 and 3 lie below 0 and 2, or beside them.
__device__ __forceinline__ int row_below(int lane) { return lane % 8 + lane / 8 % 2 * 8; }
__device__ __forceinline__ int row_beside(int lane) { return lane % 8 + lane / 16 * 8; }

/// S = Q K^T of a warp's rows and a tile, before the scale. `tile.at(row, column)` is an address.
template <int W, class Element, class QueryTile, class KeyTile>
__device__ __forceinline__ void raw_scores(float (&s)[kMatrixKeys / 8][4], const QueryTile& q,
                                           const KeyTile& k, const Place& place) {
  RINGPROOF_UNROLL
  for (int n = 0; n < kMatrixKeys / 8; ++n) {
    RINGPROOF_UNROLL
    for (int e = 0; e < 4; ++e) s[n][e] = 0;
  }
  RINGPROOF_UNROLL
  for (int d = 0; d < W; d += 16) {
    std::uint32_t a[4];
    load_matrices(a, q.at(place.warp_row + row_below(place.lane), d + place.lane / 16 * 8));
    RINGPROOF_UNROLL
    for (int n = 0; n < kMatrixKeys / 8; n += 2) {
      std::uint32_t b[4];
      load_matrices(b, k.at(n * 8 + row_beside(place.lane), d + place.lane / 8 % 2 * 8));
      multiply_add<Element>(s[n], a, b[0], b[1]);
      multiply_add<Element>(s[n + 1], a, b[2], b[3]);
    }
  }
}

/// The score rule where all pairs are visible and nothing but the scale is asked for.
__device__ __forceinline__ void scale_scores(float (&s)[kMatrixKeys / 8][4], float scale) {
  RINGPROOF_UNROLL
  for (int n = 0; n < kMatrixKeys / 8; ++n) {
    RINGPROOF_UNROLL
    for (int e = 0; e < 4; ++e) s[n][e] *= scale;
  }
}

/// The whole score rule, pair by pair; the scores of invisible pairs become minus infinity.
template <int W, class Element>
__device__ __forceinline__ void rule_scores(float (&s)[kMatrixKeys / 8][4], const LaneRows<W>& rows,
                                            const TileFacts& facts,
                                            const BlockArguments<Element>& block,
                                            const Place& place) {
  const Rules& rules = block.rules;
  const std::uint32_t seen = visible_bits<
      32>(rules, place.batch, place.head, [&](int n) -> RowPair {  // n = 4 column + e
    return {n / 2 % 2 == 0 ? rows.row[0] : rows.row[1], facts.row[n / 4 * 8 + place.pair + n % 2]};
  });
  const bool plain = rules.plain_scores();
  RINGPROOF_UNROLL
  for (int n = 0; n < kMatrixKeys / 8; ++n) {
    RINGPROOF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int j = n * 8 + place.pair + e % 2;
      if ((seen >> (4 * n + e) & 1U) == 0) {
        s[n][e] = minus_infinity();
      } else if ((facts.spoilt[2 * j] | facts.spoilt[2 * j + 1]) != 0) {
        s[n][e] = NAN;  // what the query sees is no number, and so is its answer
      } else if (plain) {
        s[n][e] *= rules.scale;
      } else {
        s[n][e] =
            score<false>(rules, place.batch, place.head, rows.row[e / 2], facts.row[j], s[n][e]);
      }
    }
  }
}

/// The online softmax: maxima across the four lanes of a row, weights in place of scores.
template <int W>
__device__ __forceinline__ void absorb_scores(float (&s)[kMatrixKeys / 8][4], LaneRows<W>& rows) {
  RINGPROOF_UNROLL
  for (int r = 0; r < 2; ++r) {
    float m = rows.m[r];
    RINGPROOF_UNROLL
    for (int n = 0; n < kMatrixKeys / 8; ++n) {
      m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
    }
    m = fmaxf(m, __shfl_xor_sync(0xffffffffU, m, 1));
    m = fmaxf(m, __shfl_xor_sync(0xffffffffU, m, 2));
    const Rescale past = rescale(rows.m[r], m);
    rows.m[r] = m;
    rows.l[r] *= past.alpha;
    RINGPROOF_UNROLL
    for (int n = 0; n < kMatrixKeys / 8; ++n) {
      RINGPROOF_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[n][e] = weight(s[n][e], past.shift);
        rows.l[r] += s[n][e];
      }
    }
    RINGPROOF_UNROLL
    for (int n = 0; n < W / 8; ++n) {
      rows.o[n][2 * r] *= past.alpha;
      rows.o[n][2 * r + 1] *= past.alpha;
    }
  }
}

/// O += P V, with P rounded to 16 bits: results of the first product are operands of the second,
/// lane by lane, without a detour.
template <int W, class Element, class ValueTile>
__device__ __forceinline__ void add_values(const float (&p)[kMatrixKeys / 8][4],
                                           float (&o)[W / 8][4], const ValueTile& v,
                                           const Place& place) {
  RINGPROOF_UNROLL
  for (int j = 0; j < kMatrixKeys / 16; ++j) {
    const std::uint32_t a[4] = {pack<Element>(p[2 * j][0], p[2 * j][1]),
                                pack<Element>(p[2 * j][2], p[2 * j][3]),
                                pack<Element>(p[2 * j + 1][0], p[2 * j + 1][1]),
                                pack<Element>(p[2 * j + 1][2], p[2 * j + 1][3])};
    RINGPROOF_UNROLL
    for (int n = 0; n < W / 8; n += 2) {
      std::uint32_t b[4];
      load_matrices_transposed(b,
                               v.at(j * 16 + row_below(place.lane), n * 8 + place.lane / 16 * 8));
      multiply_add<Element>(o[n], a, b[0], b[1]);
      multiply_add<Element>(o[n + 1], a, b[2], b[3]);
    }
  }
}

/// A weight of zero does not silence a value that is infinite or NaN: 0 * inf is NaN. Where some
/// queries do not see a key, such values become zero, and the key is marked for those that do. Two
/// threads share a row. Ends with a barrier.
template <int W, class Element, class ValueTile>
__device__ __forceinline__ void clean_values(TileFacts& facts, ValueTile& v) {
  const int thread = static_cast<int>(threadIdx.x);
  constexpr std::uint32_t low = kExponentMask<Element>, high = low << 16;
  int found = 0;
  for (int d = thread % 2 * (W / 2); d < (thread % 2 + 1) * (W / 2); d += 2) {
    auto& two = *reinterpret_cast<std::uint32_t*>(v.at(thread / 2, d));
    if ((two & low) != low && (two & high) != high) continue;
    two = 0;
    found = 1;
  }
  facts.spoilt[thread] = found;
  __syncthreads();
}

/// Rows of the tile's keys, for the pairs that have to be looked at. Seen after the next barrier.
template <class Element>
__device__ __forceinline__ void load_rows(TileFacts& facts, const BlockArguments<Element>& block,
                                          int batch, int first_key) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= kMatrixKeys) return;
  const int j = first_key + thread;
  facts.row[thread] = j < block.keys ? block.key_rows.at(batch, j) : Row{};
}

/// How much of tile `tile` this block of queries sees: nothing, all of it and with plain scores, or
/// something that has to be looked at pair by pair. Asked in the order of the tiles. Every 128
/// tiles the threads ask once for the tiles to come, one each, which takes two barriers.
template <class Element>
__device__ __forceinline__ Sight sight_of_tile(TileFacts& facts,
                                               const BlockArguments<Element>& block,
                                               const Place& place, int tile) {
  if (tile % kMatrixThreads == 0) {
    __syncthreads();
    const int first_key = (tile + static_cast<int>(threadIdx.x)) * kMatrixKeys;
    const int last_query = min(place.first_query + kMatrixRows, block.queries) - 1;
    Sight sight = Sight::none;
    if (first_key < block.keys) {
      const int last_key = min(first_key + kMatrixKeys, block.keys) - 1;
      sight = tile_sight(block.rules, block.query_rows, block.key_rows, place.batch,
                         place.first_query, last_query, first_key, last_key);
      const bool whole = last_key - first_key + 1 == kMatrixKeys;
      if (sight == Sight::all && !(whole && block.rules.plain_scores())) sight = Sight::some;
    }
    facts.sight[threadIdx.x] = static_cast<int>(sight);
    __syncthreads();
  }
  return static_cast<Sight>(facts.sight[tile % kMatrixThreads]);
}

}  // namespace ringproof::cuda
