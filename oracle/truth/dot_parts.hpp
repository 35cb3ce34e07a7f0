// Queries and keys cut at fixed places, so that two plain sums hold nearly all of q.k exactly and
// few products are left over: Lemma 6c of docs/double_double.md. The sums themselves are in
// dot_parts-inl.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/truth/aligned_array.hpp"

namespace ringproof::oracle {

inline constexpr int kSubtileKeys = 16;  // keys that lie side by side in the packed K

/// A key is cut this many bits below the power of two above the sum of its magnitudes. More bits
/// leave fewer to the query: 37 is best for normally distributed numbers of binary32.
inline constexpr int kKeyBits = 37;

/// The most entries of a query, or places of a subtile, that may have a rest.
inline std::int64_t most_rests(std::int64_t dim) { return (dim + 7) / 8; }

/// Keys towards zero on their grids, and what is left of them at the few places where anything is.
struct KeyParts {
  AlignedArray coarse;                   // [4 tiles, D, 16]
  AlignedArray rests;                    // [4 tiles, most_rests, 16]
  std::vector<std::int32_t> rest_place;  // [4 tiles, most_rests] t of each rest
  std::vector<std::int32_t> rest_count;  // [4 tiles] -1: the subtile is not cut
};

/// Queries of a batch: q = coarse + fine + rest, the last of them nearly always 0.
struct QueryParts {
  AlignedArray parts;                    // [D, rows, 2] coarse and fine
  AlignedArray rests;                    // [rows, most_rests]
  std::vector<std::int32_t> rest_place;  // [rows, most_rests] t of each rest
  std::vector<std::int32_t> rest_count;  // [rows] -1: the query is not cut
};

/// The multiple of the power of two `grid` next to x towards zero. Precondition: |x| < 2^63 grid.
inline double cut_at(double x, double grid) {
  return static_cast<double>(static_cast<std::int64_t>(x / grid)) * grid;
}

/// Cuts packed keys.
void cut_keys(const double* k,  // [subtiles, D, 16]
              std::int64_t subtiles, std::int64_t dim, KeyParts&);

/// Sizes the parts of `rows` queries that are all zeros.
void begin_queries(std::int64_t dim, int rows, QueryParts&);
/// Cuts the query of row r.
void cut_query(std::span<const double> q, int rows, int r, QueryParts&);

}  // namespace ringproof::oracle
