// Cutting queries and keys (dot_parts.hpp).
#include "oracle/truth/dot_parts.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/truth/error_bounds.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A power of two above x; 0 if products of parts might be too large or too small.
double power_above(double x) {
  if (!(x > 0x1p-300 && x < 0x1p300)) return 0;
  return std::ldexp(1.0, std::ilogb(x) + 1);
}

/// Cuts one subtile; returns the number of places with a rest, or -1 if it is not to be cut.
std::int32_t cut_subtile(const double* k,                   // [D, 16]
                         std::int64_t dim, double* coarse,  // [D, 16]
                         std::int32_t* place,               // [most_rests]
                         double* rests) {                   // [most_rests, 16]
  double sum[kSubtileKeys] = {}, grid[kSubtileKeys];
  for (std::int64_t t = 0; t < dim; ++t) {
    for (int n = 0; n < kSubtileKeys; ++n) sum[n] += std::abs(k[t * kSubtileKeys + n]);
  }
  for (int n = 0; n < kSubtileKeys; ++n) {
    // Lemma 4; any grid will do for a key of zeros.
    grid[n] = std::ldexp(sum[n] == 0 ? 1.0 : power_above(sum[n] * bounds::kUp), -kKeyBits);
    if (grid[n] == 0) return -1;
  }
  std::int32_t count = 0;
  for (std::int64_t t = 0; t < dim; ++t) {
    const double* from = k + t * kSubtileKeys;
    double* to = coarse + t * kSubtileKeys;
    for (int n = 0; n < kSubtileKeys; ++n) to[n] = cut_at(from[n], grid[n]);
    if (std::equal(from, from + kSubtileKeys, to)) continue;
    if (count == most_rests(dim)) return -1;
    place[count] = static_cast<std::int32_t>(t);
    for (int n = 0; n < kSubtileKeys; ++n) rests[count * kSubtileKeys + n] = from[n] - to[n];
    ++count;
  }
  return count;
}

}  // namespace

void cut_keys(const double* k, std::int64_t subtiles, std::int64_t dim, KeyParts& parts) {
  const std::int64_t most = most_rests(dim), tile = dim * kSubtileKeys;
  double* coarse = parts.coarse.resize(subtiles * tile);
  double* rests = parts.rests.resize(subtiles * most * kSubtileKeys);
  parts.rest_place.resize(size(subtiles * most));
  parts.rest_count.resize(size(subtiles));
  for (std::int64_t n = 0; n < subtiles; ++n) {
    parts.rest_count[size(n)] =
        cut_subtile(k + n * tile, dim, coarse + n * tile, &parts.rest_place[size(n * most)],
                    rests + n * most * kSubtileKeys);
  }
}

void begin_queries(std::int64_t dim, int rows, QueryParts& parts) {
  std::fill_n(parts.parts.resize(dim * rows * 2), dim * rows * 2, 0.0);
  parts.rests.resize(most_rests(dim) * rows);
  parts.rest_place.resize(size(most_rests(dim) * rows));
  parts.rest_count.assign(size(rows), 0);
}

void cut_query(std::span<const double> q, int rows, int r, QueryParts& parts) {
  const auto dim = static_cast<std::int64_t>(q.size());
  double largest = 0;
  for (const double value : q) largest = std::max(largest, std::abs(value));
  std::int32_t& count = parts.rest_count[size(r)];
  if (largest == 0) return;
  const double above = power_above(largest);
  const double coarse_grid = above * std::ldexp(1.0, kKeyBits - 53);
  const double fine_grid = above * std::ldexp(1.0, 2 * kKeyBits - 106);
  if (above == 0) count = -1;
  for (std::int64_t t = 0; t < dim && count >= 0; ++t) {
    double* to = parts.parts.data() + (t * rows + r) * 2;
    to[0] = cut_at(q[size(t)], coarse_grid);
    const double rest = q[size(t)] - to[0];
    to[1] = cut_at(rest, fine_grid);
    if (rest == to[1]) continue;
    if (count == most_rests(dim)) {
      count = -1;
      return;
    }
    parts.rest_place[size(r * most_rests(dim) + count)] = static_cast<std::int32_t>(t);
    parts.rests.data()[r * most_rests(dim) + count] = rest - to[1];
    ++count;
  }
}

}  // namespace ringproof::oracle
