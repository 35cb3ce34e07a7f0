// What a case says about pairs of rows, on the device: which row of the problem lies where, who
// sees whom, and what happens between q.k and the softmax. The integer rules are the scalar tier's
// own functions; here they are only joined, and asked about whole tiles.
#pragma once

#include "cuda/device/numbers.cuh"
#include "reference/layout.hpp"
#include "reference/mask.hpp"

namespace ringproof::cuda {

using reference::Index;

/// A row of queries or keys: what the rules want to know about it.
struct Row {
  Index position = 0;
  std::int32_t document = -1;  // negative: it meets nobody
  std::int32_t number = 0;     // in the whole problem
};

/// The rows of one rank: the description that every rank knows. Row numbers do not travel.
struct RowTable {
  reference::Sharding sharding;
  Index rank = 0;
  Index offset = 0;                        // position of row 0, where none are listed
  const Index* position = nullptr;         // [B or 1, N]
  const std::int32_t* document = nullptr;  // [N]
  const Index* length = nullptr;           // [B], keys from there on are padding
  Index position_stride = 0;               // from batch to batch

  __host__ __device__ __forceinline__ Row at(Index batch, Index slot) const {
    const Index row = reference::global_row(sharding, rank, slot);
    const bool inside = length == nullptr || reference::inside_length(row, length[batch]);
    return {position == nullptr ? row + offset : position[batch * position_stride + row],
            !inside               ? -1
            : document == nullptr ? 0
                                  : document[row],
            static_cast<std::int32_t>(row)};
  }
  /// Do positions ascend from slot to slot, all in one document?
  __host__ __device__ bool ordered() const { return position == nullptr && document == nullptr; }
};

/// A tensor over pairs, [B, H, Nq, Nk]; a repeated axis has stride 0.
template <class T>
struct Pairs {
  const T* data = nullptr;
  Index stride[4]{};

  __device__ const T& at(Index b, Index h, Index i, Index j) const {
    return data[b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3]];
  }
};

struct Rules {
  float scale = 1, softcap = 0;
  bool causal = false;
  Index window_left = -1, window_right = -1;
  Pairs<float> bias;
  Pairs<std::uint8_t> mask;
  Pairs<float> slopes;           // [B, H, 1, 1]
  const float* sinks = nullptr;  // [H]
  bool nan_where_empty = false;

  /// Nothing but the scale stands between q.k and the softmax.
  __host__ __device__ bool plain_scores() const {
    return softcap == 0 && bias.data == nullptr && slopes.data == nullptr;
  }
};

/// How much of a tile of pairs is visible. `some` may be said of any tile.
enum class Sight { none, some, all };

__device__ inline bool visible(const Rules& rules, int batch, int head, const Row& query,
                               const Row& key) {
  if (!reference::same_document(query.document, key.document)) return false;
  if (rules.causal && !reference::causal_allows(query.position, key.position)) return false;
  if (!reference::window_allows(query.position, key.position, rules.window_left,
                                rules.window_right)) {
    return false;
  }
  if (rules.mask.data != nullptr && rules.mask.at(batch, head, query.number, key.number) == 0) {
    return false;
  }
  return rules.bias.data == nullptr ||
         !is_minus_infinity(rules.bias.at(batch, head, query.number, key.number));
}

struct RowPair {
  Row query, key;
};

/// Bit n says whether pair n is visible; `pair_at(n)` gives its rows. A loop: a thread with many
/// pairs in registers shall not hold as many copies of the rules.
template <int Pairs, class PairAt>
__device__ __forceinline__ std::uint32_t visible_bits(const Rules& rules, int batch, int head,
                                                      const PairAt& pair_at) {
  std::uint32_t bits = 0;
  RINGPROOF_ROLLED
  for (int n = 0; n < Pairs; ++n) {
    const RowPair pair = pair_at(n);
    bits |= (visible(rules, batch, head, pair.query, pair.key) ? 1U : 0U) << n;
  }
  return bits;
}

/// Score of a visible key; `exact` tanh is the scalar tier's, the other the hardware library's.
template <bool Exact>
__device__ float score(const Rules& rules, int batch, int head, const Row& query, const Row& key,
                       float dot_product) {
  float s = rules.scale * dot_product;
  if (rules.softcap != 0) {
    const float share = s / rules.softcap;
    s = rules.softcap * (Exact ? exact_tanh(share) : tanhf(share));
  }
  if (rules.bias.data != nullptr) s = s + rules.bias.at(batch, head, query.number, key.number);
  if (rules.slopes.data != nullptr) {
    const auto apart = reference::distance(query.position, key.position);
    s = s - rules.slopes.at(batch, head, 0, 0) * static_cast<float>(apart);
  }
  return s;
}

/// What the first and last positions of a tile's queries and keys decide about all of its pairs, if
/// positions ascend in both.
constexpr Sight sight_of(bool causal, Index left, Index right, Index first_query, Index last_query,
                         Index first_key, Index last_key) {
  const bool all_causal = !causal || last_key <= first_query;
  const bool all_right = right < 0 || last_key <= first_query ||
                         reference::window_allows(first_query, last_key, left, right);
  const bool all_left = left < 0 || first_key >= last_query ||
                        reference::window_allows(last_query, first_key, left, right);
  if (all_causal && all_right && all_left) return Sight::all;
  const bool no_causal = causal && first_key > last_query;
  const bool no_right = right >= 0 && first_key > last_query &&
                        !reference::window_allows(last_query, first_key, left, right);
  const bool no_left = left >= 0 && last_key < first_query &&
                       !reference::window_allows(first_query, last_key, left, right);
  return no_causal || no_right || no_left ? Sight::none : Sight::some;
}

/// The same for slots [first, last] of two tables.
__device__ inline Sight tile_sight(const Rules& rules, const RowTable& queries,
                                   const RowTable& keys, int batch, int first_query, int last_query,
                                   int first_key, int last_key) {
  if (!queries.ordered() || !keys.ordered()) return Sight::some;
  const Sight sight =
      sight_of(rules.causal, rules.window_left, rules.window_right,
               queries.at(batch, first_query).position, queries.at(batch, last_query).position,
               keys.at(batch, first_key).position, keys.at(batch, last_key).position);
  const bool more =
      keys.length != nullptr || rules.mask.data != nullptr || rules.bias.data != nullptr;
  return sight == Sight::all && more ? Sight::some : sight;
}

}  // namespace ringproof::cuda
