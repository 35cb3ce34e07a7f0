// The vector tile, forward: which tiles meet, what a mask does to their scores, and the threads
// (tile_simd.hpp). The arithmetic is in simd_kernels.cpp.
#include <atomic>
#include <numbers>

#include "mpi/tile_simd_class.hpp"

namespace ringproof::mpi {

SimdTile::SimdTile(RankProblem<float> mine, int threads, std::optional<Sixteen> wire)
    : mine_(std::move(mine)),
      wire_{wire},
      threads_(threads),
      padded_D_(padded_columns(mine_.problem.head_dim)),
      padded_Dv_(padded_columns(mine_.problem.value_dim)),
      rules_{p().causal, p().window_left, p().window_right} {
  natural_ = p().softcap != 0 || p().bias || p().alibi_slopes || !(p().scale > 0);
  looked_at_ = natural_ || p().mask;
  factor_ =
      static_cast<float>((natural_ ? 1.0 : static_cast<double>(p().scale)) * std::numbers::log2e);
  for (Index b = 0; b < p().batches; ++b) {
    query_tiles_.push_back(cut(p().queries, kQueries, [&](Index i) {
      return std::pair(query_position(p(), b, i),
                       p().document_q ? p().document_q(b, 0, i, 0) : std::int32_t{0});
    }));
  }
  const Index heads = p().batches * p().heads, tiles = heads * tiles_per_head();
  q_ = AlignedFloats(tiles * p().head_dim * kQueries);
  m_ = AlignedFloats(tiles * kQueries, -INFINITY);
  l_ = AlignedFloats(tiles * kQueries);
  o_ = AlignedFloats(tiles * p().value_dim * kQueries);
  const Index n = p().queries, D = p().head_dim;
  for (Index head = 0; head < heads; ++head) {
    transpose_rows(mine_.q.data() + head * n * D, n, D,
                   q_.data() + head * tiles_per_head() * D * kQueries);
  }
  release(mine_.q);
  for (int thread = 0; thread < threads_; ++thread) {
    Scratch& scratch = scratch_.emplace_back();
    scratch.widened_k = AlignedFloats(wire_.type ? kKeys * D : 0);
    scratch.widened_v = AlignedFloats(wire_.type ? kKeys * p().value_dim : 0);
    scratch.x = AlignedFloats(kKeys * kQueries);
  }
}

void SimdTile::pack_block(std::span<std::byte> block) {
  std::size_t place = 0;
  for (const auto* numbers : {&mine_.k, &mine_.v}) {
    for (const float number : *numbers) {
      if (wire_.type) {
        const std::uint16_t bits = narrow(*wire_.type, number);
        std::memcpy(block.data() + place, &bits, sizeof bits);
      } else {
        std::memcpy(block.data() + place, &number, sizeof number);
      }
      place += wire_.width();
    }
  }
  release(mine_.k);
  release(mine_.v);
}

/// The keys of a block in tiles; keys that no query of the batch can see are in no document.
std::vector<RowTile> SimdTile::key_tiles(Index b, Index origin) const {
  return cut(row_count(mine_.keys, origin), kKeys, [&](Index slot) {
    const Index j = global_row(mine_.keys, origin, slot);
    const bool padding = p().key_lengths && !inside_length(j, p().key_lengths(b, 0, 0, 0));
    const std::int32_t document = p().document_k ? p().document_k(b, 0, j, 0) : 0;
    return std::pair(key_position(p(), b, j), padding ? std::int32_t{-1} : document);
  });
}

/// Keys at the end of a tile that a causal mask hides from all queries of the other are left out.
SimdTile::Pair SimdTile::pair_of(const Head& head, Index n, const RowTile& keys,
                                 Index origin) const {
  const RowTile& queries = query_tiles_[head.b][n];
  const Coverage covered = mpi::coverage(rules_, queries, keys, looked_at_);
  Index count = keys.count;
  if (covered == Coverage::something && rules_.causal) {
    while (count > 0 &&
           key_position(p(), head.b, global_row(mine_.keys, origin, keys.first + count - 1)) >
               queries.segment.position_high) {
      --count;
    }
  }
  return {head, &queries, &keys, count, tile_number(head, n), origin, covered};
}

/// kv: number of the head of keys among those of all batches.
void SimdTile::read_keys(Bytes block, Index origin, Index kv, const RowTile& keys,
                         Scratch& scratch) const {
  const Index m = row_count(mine_.keys, origin), D = p().head_dim, Dv = p().value_dim;
  const Index row = kv * m + keys.first, values = p().batches * p().kv_heads * m * D;
  scratch.k = wire_.read(block, row * D, keys.count * D, scratch.widened_k.data());
  scratch.v = wire_.read(block, values + row * Dv, keys.count * Dv, scratch.widened_v.data());
}

/// A mask by position alone leaves each key an interval of positions, and with queries in order of
/// their positions an interval of lanes.
Index SimdTile::hide_by_position(const Pair& pair, float* x) const {
  constexpr Index kLowest = std::numeric_limits<Index>::min();
  constexpr Index kHighest = std::numeric_limits<Index>::max();
  const Index* positions =
      mine_.position_q.data() + pair.head.b * p().queries + pair.queries->first;
  Index seen = 0;
  for (Index j = 0; j < pair.key_count; ++j) {
    const Index key = global_row(mine_.keys, pair.origin, pair.keys->first + j);
    const Index position = key_position(p(), pair.head.b, key);
    const bool far_up = rules_.window_left < 0 || position > kHighest - rules_.window_left;
    const bool far_down = rules_.window_right < 0 || position < kLowest + rules_.window_right;
    const Index high = far_up ? kHighest : position + rules_.window_left;
    Index low = far_down ? kLowest : position - rules_.window_right;
    if (rules_.causal) low = std::max(low, position);
    const Index* end = positions + pair.queries->count;
    const Index first = std::lower_bound(positions, end, low) - positions;
    const Index last = std::max(first, std::upper_bound(positions, end, high) - positions);
    float* row = x + j * kQueries;
    std::fill(row, row + first, -INFINITY);
    std::fill(row + last, row + pair.queries->count, -INFINITY);
    seen += last - first;
  }
  return seen;
}

/// Turns products into what absorb_tile takes: scores where x is the score, and minus infinity
/// where a query does not see the key. Returns the pairs that are seen.
Index SimdTile::hide(const Pair& pair, float* x) const {
  const bool by_position = !looked_at_ && !p().document_q && !p().key_lengths;
  if (by_position && pair.queries->ascending) return hide_by_position(pair, x);
  Index seen = 0;
  for (Index j = 0; j < pair.key_count; ++j) {
    const Index key = global_row(mine_.keys, pair.origin, pair.keys->first + j);
    for (Index i = 0; i < pair.queries->count; ++i) {
      float& place = x[j * kQueries + i];
      const QueryRow query{pair.head.b, pair.head.h, pair.queries->first + i};
      const bool sees = visible(p(), query, key);
      seen += sees;
      if (!sees) {
        place = -INFINITY;
      } else if (natural_) {
        place = score(p(), query, key, place);
      }
    }
  }
  return seen;
}

/// x of a pair of tiles, and how many pairs are seen.
Index SimdTile::scores_of(const Pair& pair, Scratch& scratch) {
  multiply({.a = {scratch.k, p().head_dim, 1},
            .b = {q_.data() + pair.tile * p().head_dim * kQueries, kQueries},
            .c = {scratch.x.data(), kQueries},
            .rows = pair.key_count,
            .depth = p().head_dim,
            .columns = kQueries},
           Into::replace);
  return pair.coverage == Coverage::everything ? pair.queries->count * pair.key_count
                                               : hide(pair, scratch.x.data());
}

/// Folds one tile of keys into one tile of queries; returns the pairs seen.
Index SimdTile::absorb_pair(const Pair& pair, Scratch& scratch) {
  const Index Dv = p().value_dim, keys = pair.key_count;
  float* x = scratch.x.data();
  const Index seen = scores_of(pair, scratch);
  if (seen == 0) return 0;
  const TileState state{m_.data() + pair.tile * kQueries, l_.data() + pair.tile * kQueries,
                        o_.data() + pair.tile * Dv * kQueries};
  if (pair.coverage == Coverage::everything || !any_not_finite(scratch.v, keys * Dv)) {
    absorb_tile(state, x, keys, factor_, scratch.v, Dv);
    return seen;
  }
  // 0 times such a value is no number: it may only meet the queries that see it.
  scratch.finite_v.assign(scratch.v, scratch.v + keys * Dv);
  const std::vector<float> scores(x, x + keys * kQueries);
  for (float& number : scratch.finite_v) number = std::isfinite(number) ? number : 0;
  absorb_tile(state, x, keys, factor_, scratch.finite_v.data(), Dv);
  for (Index n = 0; n < keys * Dv; ++n) {
    if (std::isfinite(scratch.v[n])) continue;
    for (Index i = 0; i < kQueries; ++i) {
      const Index place = n / Dv * kQueries + i;
      if (scores[place] != -INFINITY) state.o[n % Dv * kQueries + i] += x[place] * scratch.v[n];
    }
  }
  return seen;
}

Index SimdTile::absorb(Index origin, Bytes block) {
  const Index group = p().heads / p().kv_heads, rows = group * tiles_per_head();
  const Index tasks = (rows + kTilesOfTask - 1) / kTilesOfTask;
  std::atomic<Index> pairs{0};
  for_all(p().batches * p().kv_heads * tasks, threads_, [&](Index task, int thread) {
    const Index kv = task / tasks, b = kv / p().kv_heads;
    const Index first = task % tasks * kTilesOfTask, last = std::min(rows, first + kTilesOfTask);
    Scratch& scratch = scratch_[static_cast<std::size_t>(thread)];
    for (const RowTile& keys : key_tiles(b, origin)) {
      scratch.k = nullptr;
      for (Index n = first; n < last; ++n) {
        const Head head{b, kv % p().kv_heads * group + n / tiles_per_head()};
        const Pair pair = pair_of(head, n % tiles_per_head(), keys, origin);
        if (pair.coverage == Coverage::nothing) continue;
        if (scratch.k == nullptr) read_keys(block, origin, kv, keys, scratch);
        pairs += absorb_pair(pair, scratch);
      }
    }
  });
  return pairs;
}

/// Sinks, the one division and the logarithm, in binary64: a few numbers a row.
ShardAnswer<float> SimdTile::finish() {
  const Index n = p().queries, Dv = p().value_dim, rows = p().batches * p().heads * n;
  ShardAnswer<float> answer{std::vector<float>(rows * Dv), std::vector<float>(rows)};
  const double unit = natural_ ? 1.0 : static_cast<double>(p().scale);
  for (Index row = 0; row < rows; ++row) {
    const Index head = row / n, i = row % n, lane = i % kQueries;
    const Index tile = head * tiles_per_head() + i / kQueries;
    const double m = unit * m_.data()[tile * kQueries + lane];
    double l = l_.data()[tile * kQueries + lane], largest = m;
    if (p().sinks) largest = std::max(m, static_cast<double>(p().sinks(0, head % p().heads, 0, 0)));
    const bool empty = largest == -INFINITY;
    const double alpha = empty ? 0 : std::exp(m - largest);
    l *= alpha;
    if (p().sinks && !empty) l += std::exp(p().sinks(0, head % p().heads, 0, 0) - largest);
    answer.lse[row] = empty ? -INFINITY : static_cast<float>(largest + std::log(l));
    const float* o = o_.data() + tile * Dv * kQueries + lane;
    for (Index c = 0; c < Dv; ++c) {
      answer.out[row * Dv + c] =
          empty ? empty_output(p()) : static_cast<float>(alpha * o[c * kQueries] / l);
    }
  }
  o_ = {}, m_ = {}, l_ = {};
  return answer;
}

std::unique_ptr<Tile<float>> make_simd_tile(RankProblem<float> mine, int threads,
                                            std::optional<Sixteen> wire) {
  return std::make_unique<SimdTile>(std::move(mine), threads, wire);
}

}  // namespace ringproof::mpi
