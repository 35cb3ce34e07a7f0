// q.k from parts: two plain sums that are exact, and the few products that they leave out. Lemma 6c
// of docs/double_double.md. Included once for every target.
#include "oracle/truth/grid_sum-inl.hpp"

#if defined(RINGPROOF_DOT_PARTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_DOT_PARTS_INL
#undef RINGPROOF_DOT_PARTS_INL
#else
#define RINGPROOF_DOT_PARTS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// Whether row r and the subtile are cut, and leave no more terms than Lemma 6 counts. It depends
/// on the row and the subtile alone: the company of a row must not show.
HWY_INLINE bool is_cut(const RowBatch& batch, std::int64_t subtile, int r) {
  const std::int32_t of_key = batch.head->k_parts.rest_count[static_cast<std::size_t>(subtile)];
  const std::int32_t of_query = batch.q_parts.rest_count[static_cast<std::size_t>(r)];
  return of_key >= 0 && of_query >= 0 && 2 + of_key + of_query <= batch.head->head_dim;
}

/// q.k of 16 keys for row r from its two plain sums: everything is added as Lemma 6 adds products.
HWY_INLINE void join_parts(const RowBatch& batch, std::int64_t subtile, int r,
                           const double* HWY_RESTRICT sums,        // [2, 16]
                           const double* HWY_RESTRICT magnitudes,  // [16]
                           double* HWY_RESTRICT high,              // [16]
                           double* HWY_RESTRICT low) {             // [16]
  constexpr int kVectors = kSubtileKeys / kLanes;
  const std::int64_t dim = batch.head->head_dim, most = most_rests(dim);
  const KeyParts& k = batch.head->k_parts;
  const QueryParts& q = batch.q_parts;
  Accumulator<false> sum[kVectors];
  for (int n = 0; n < kVectors; ++n) {
    sum[n].start(grid_constant(load(magnitudes + n * kLanes)), 0);
    sum[n].add_product(load(sums + n * kLanes), broadcast(1));
    sum[n].add_product(load(sums + kSubtileKeys + n * kLanes), broadcast(1));
  }
  const auto add = [&](double query, const double* keys) HWY_ATTR {
    for (int n = 0; n < kVectors; ++n) {
      sum[n].add_product(broadcast(query), load(keys + n * kLanes));
    }
  };
  for (std::int32_t n = 0; n < k.rest_count[static_cast<std::size_t>(subtile)]; ++n) {
    const std::int64_t place = subtile * most + n;
    const std::int64_t t = k.rest_place[static_cast<std::size_t>(place)];
    add(batch.q.data()[t * batch.rows + r], k.rests.data() + place * kSubtileKeys);
  }
  for (std::int32_t n = 0; n < q.rest_count[static_cast<std::size_t>(r)]; ++n) {
    const std::int64_t place = r * most + n;
    const std::int64_t t = q.rest_place[static_cast<std::size_t>(place)];
    add(q.rests.data()[place], k.coarse.data() + (subtile * dim + t) * kSubtileKeys);
  }
  for (int n = 0; n < kVectors; ++n) {
    const Pair dot = sum[n].result(grid_constant(load(magnitudes + n * kLanes)), 0);
    store(dot.hi, high + n * kLanes);
    store(dot.lo, low + n * kLanes);
  }
}

/// q.k of 16 keys for rows [row, row + kRows), all of them cut.
template <int kRows>
HWY_INLINE void cut_dot_products(const RowBatch& batch, std::int64_t subtile, int row,
                                 const double* magnitudes,     // [kRows, 16]
                                 double* high, double* low) {  // [kRows, 16]
  const std::int64_t dim = batch.head->head_dim;
  alignas(64) double sums[2 * kRows * kSubtileKeys];
  plain_sums<2 * kRows, false>(batch.q_parts.parts.data() + 2 * row, 2 * batch.rows,
                               batch.head->k_parts.coarse.data() + subtile * dim * kSubtileKeys,
                               dim, sums);
  for (int r = 0; r < kRows; ++r) {
    const int at = r * kSubtileKeys;
    join_parts(batch, subtile, row + r, sums + 2 * at, magnitudes + at, high + at, low + at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
