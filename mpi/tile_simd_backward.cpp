// The vector tile, backward: five products for a pair of tiles (tile_simd.hpp). The numbers in
// brackets are those of docs/math.md.
#include <numbers>

#include "mpi/tile_simd_class.hpp"

namespace ringproof::mpi {

void SimdTile::begin_backward(const ShardAnswer<float>& answer) {
  const Index n = p().queries, D = p().head_dim, Dv = p().value_dim;
  const Index heads = p().batches * p().heads, tiles = heads * tiles_per_head();
  lse_ = answer.lse;
  row_delta_ = reference::row_delta<float>(mine_.dout, answer.out, answer.lse, mine_.dlse);
  dout_ = AlignedFloats(tiles * Dv * kQueries);
  shift_ = AlignedFloats(tiles * kQueries), delta_ = AlignedFloats(tiles * kQueries);
  dq_ = AlignedFloats(tiles * D * kQueries);
  q_rows_ = AlignedFloats(tiles * kQueries * padded_D_);
  dout_rows_ = AlignedFloats(tiles * kQueries * padded_Dv_);
  for (Index row = 0; row < heads * n; ++row) {
    const Index tile = row / n * tiles_per_head() + row % n / kQueries, lane = row % n % kQueries;
    // A row that saw nothing has x = -infinity everywhere; its shift only has to be finite.
    const bool empty = lse_[row] == -INFINITY;
    shift_.data()[tile * kQueries + lane] =
        empty ? 0 : static_cast<float>(static_cast<double>(lse_[row]) * std::numbers::log2e);
    delta_.data()[tile * kQueries + lane] = row_delta_[row];
    for (Index d = 0; d < D; ++d) {
      q_rows_.data()[(tile * kQueries + lane) * padded_D_ + d] =
          q_.data()[(tile * D + d) * kQueries + lane];
    }
    for (Index c = 0; c < Dv; ++c) {
      const float number = empty ? 0 : mine_.dout[row * Dv + c];
      dout_rows_.data()[(tile * kQueries + lane) * padded_Dv_ + c] = number;
      dout_.data()[(tile * Dv + c) * kQueries + lane] = number;
    }
  }
  release(mine_.dout);
  for (Index tile = 0; tile < tiles; ++tile) {
    const bool q = any_not_finite(q_.data() + tile * D * kQueries, D * kQueries);
    not_finite_.push_back(q || any_not_finite(dout_.data() + tile * Dv * kQueries, Dv * kQueries));
  }
  dbias_ = no_bias_gradient(p(), n);
  for (Scratch& scratch : scratch_) {
    scratch.dP = AlignedFloats(kKeys * kQueries);
    scratch.dk = AlignedFloats(kKeys * padded_D_);
    scratch.dv = AlignedFloats(kKeys * padded_Dv_);
  }
}

/// dS on its way from the score to the product (25), (26). `dot_products` are what x was.
void SimdTile::pass_score(const Pair& pair, float* dS, const float* dot_products) {
  for (Index j = 0; j < pair.key_count; ++j) {
    const Index key = global_row(mine_.keys, pair.origin, pair.keys->first + j);
    for (Index i = 0; i < pair.queries->count; ++i) {
      float& place = dS[j * kQueries + i];
      if (p().bias && visible(p(), {pair.head.b, pair.head.h, pair.queries->first + i}, key)) {
        dbias_.add(pair.head.b, pair.head.h, pair.queries->first + i, key, place);
      }
      if (p().softcap != 0) place *= score_slope(p(), dot_products[j * kQueries + i]);
    }
  }
}

/// All five products of a pair of tiles. Keys and values are in the scratch memory, where the sums
/// for the keys are, too.
void SimdTile::gradient_of_pair(const Pair& pair, Scratch& scratch) {
  const Index D = p().head_dim, Dv = p().value_dim, keys = pair.key_count;
  float *x = scratch.x.data(), *dP = scratch.dP.data();
  if (pair.coverage != Coverage::everything &&
      (not_finite_[pair.tile] != 0 || any_not_finite(scratch.k, keys * D) ||
       any_not_finite(scratch.v, keys * Dv))) {
    gradient_pair_by_pair(pair, scratch);
    return;
  }
  std::vector<float> dot_products;
  multiply({.a = {scratch.k, D, 1},
            .b = {q_.data() + pair.tile * D * kQueries, kQueries},
            .c = {x, kQueries},
            .rows = keys,
            .depth = D,
            .columns = kQueries},
           Into::replace);
  if (p().softcap != 0) dot_products.assign(x, x + keys * kQueries);
  if (pair.coverage != Coverage::everything && hide(pair, x) == 0) return;
  probabilities_tile(x, keys, factor_, shift_.data() + pair.tile * kQueries);  // (21)
  multiply({.a = {scratch.v, Dv, 1},
            .b = {dout_.data() + pair.tile * Dv * kQueries, kQueries},
            .c = {dP, kQueries},
            .rows = keys,
            .depth = Dv,
            .columns = kQueries},
           Into::replace);
  score_gradients_tile(dP, x, keys, delta_.data() + pair.tile * kQueries);  // (23)
  if (natural_) pass_score(pair, dP, dot_products.data());
  multiply({.a = {x, kQueries, 1},
            .b = {dout_rows_.data() + pair.tile * kQueries * padded_Dv_, padded_Dv_},
            .c = {scratch.dv.data(), padded_Dv_},
            .rows = keys,
            .depth = pair.queries->count,
            .columns = padded_Dv_},
           Into::add);  // (24)
  multiply({.a = {dP, kQueries, 1},
            .b = {q_rows_.data() + pair.tile * kQueries * padded_D_, padded_D_},
            .c = {scratch.dk.data(), padded_D_},
            .rows = keys,
            .depth = pair.queries->count,
            .columns = padded_D_},
           Into::add);  // (28)
  multiply({.a = {scratch.k, 1, D},
            .b = {dP, kQueries},
            .c = {dq_.data() + pair.tile * D * kQueries, kQueries},
            .rows = D,
            .depth = keys,
            .columns = kQueries},
           Into::add);  // (27)
}

/// The same for tiles that hold infinities or no numbers: 0 times one of them must not reach a pair
/// that is not seen, so nothing is multiplied for those.
void SimdTile::gradient_pair_by_pair(const Pair& pair, Scratch& scratch) {
  const Index D = p().head_dim, Dv = p().value_dim;
  for (Index j = 0; j < pair.key_count; ++j) {
    const Index key = global_row(mine_.keys, pair.origin, pair.keys->first + j);
    const Numbers<float> k(scratch.k + j * D, D), v(scratch.v + j * Dv, Dv);
    for (Index i = 0; i < pair.queries->count; ++i) {
      const QueryRow query{pair.head.b, pair.head.h, pair.queries->first + i};
      if (!visible(p(), query, key)) continue;
      const Index lane = pair.tile * kQueries + i;
      const Numbers<float> q(q_rows_.data() + lane * padded_D_, D);
      const Numbers<float> dO(dout_rows_.data() + lane * padded_Dv_, Dv);
      const float product = dot<float>(q, k);
      const float x = natural_ ? score(p(), query, key, product) : product;
      const float P = std::exp2(factor_ * x - shift_.data()[lane]);
      float dS = P * (dot<float>(dO, v) - delta_.data()[lane]);
      if (p().bias) dbias_.add(query.b, query.h, query.i, key, dS);
      dS *= score_slope(p(), product);
      for (Index c = 0; c < Dv; ++c) scratch.dv.data()[j * padded_Dv_ + c] += P * dO[c];
      for (Index d = 0; d < D; ++d) {
        scratch.dk.data()[j * padded_D_ + d] += dS * q[d];
        dq_.data()[(pair.tile * D + d) * kQueries + i] += dS * k[d];
      }
    }
  }
}

/// One tile of keys against all queries that read its head. dq of a tile of queries is a sum over
/// tiles of keys in their order, so this follows whoever has the tile of keys `before`: the sums
/// are the same for any number of threads. Both count the tiles of queries they are through with.
void SimdTile::gradient_of_keys(const KeyTask& task, const std::atomic<Index>* before,
                                std::atomic<Index>& done, Scratch& scratch) {
  const Index group = p().heads / p().kv_heads, first_head = task.kv % p().kv_heads * group;
  std::fill_n(scratch.dk.data(), task.keys->count * padded_D_, 0.0f);
  std::fill_n(scratch.dv.data(), task.keys->count * padded_Dv_, 0.0f);
  Index through = 0;
  for (Index h = first_head; h < first_head + group; ++h) {
    for (Index n = 0; n < tiles_per_head(); ++n) {
      for (Index ahead = 0; before != nullptr && (ahead = before->load()) <= through;) {
        before->wait(ahead);  // also where nothing is seen: whoever comes next counts on it
      }
      const Pair pair = pair_of({task.kv / p().kv_heads, h}, n, *task.keys, task.origin);
      if (pair.coverage != Coverage::nothing) gradient_of_pair(pair, scratch);
      done.store(++through);
      done.notify_one();
    }
  }
}

void SimdTile::gradient(Index origin, Bytes block, std::span<float> part) {
  const Index m = row_count(mine_.keys, origin), D = p().head_dim, Dv = p().value_dim;
  const Index kv_heads = p().batches * p().kv_heads;
  float* values = part.data() + kv_heads * m * D;
  std::vector<std::vector<RowTile>> key_tiles_of;  // [B]
  for (Index b = 0; b < p().batches; ++b) key_tiles_of.push_back(key_tiles(b, origin));
  const auto tiles = static_cast<Index>(key_tiles_of.front().size());
  std::vector<std::atomic<Index>> done(static_cast<std::size_t>(kv_heads * tiles));
  // Threads share the elements of a bias that repeats over heads.
  for_all(kv_heads * tiles, p().bias ? 1 : threads_, [&](Index number, int thread) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(thread)];
    const Index kv = number / tiles;
    const RowTile& keys = key_tiles_of[kv / p().kv_heads][number % tiles];
    read_keys(block, origin, kv, keys, scratch);
    gradient_of_keys({kv, origin, &keys}, number % tiles > 0 ? &done[number - 1] : nullptr,
                     done[number], scratch);
    for (Index j = 0; j < keys.count; ++j) {
      const Index row = kv * m + keys.first + j;
      for (Index d = 0; d < D; ++d) {
        part[row * D + d] = p().scale * scratch.dk.data()[j * padded_D_ + d];
      }
      std::copy_n(scratch.dv.data() + j * padded_Dv_, Dv, values + row * Dv);
    }
  });
}

QueryGradient<float> SimdTile::finish_backward() {
  const Index n = p().queries, D = p().head_dim, rows = p().batches * p().heads * n;
  QueryGradient<float> home{std::vector<float>(rows * D), std::move(dbias_),
                            std::vector<float>(p().sinks ? p().heads : 0, 0.0f)};
  for (Index row = 0; row < rows; ++row) {
    const Index tile = row / n * tiles_per_head() + row % n / kQueries, lane = row % n % kQueries;
    for (Index d = 0; d < D; ++d) {
      home.dq[row * D + d] = p().scale * dq_.data()[(tile * D + d) * kQueries + lane];
    }
    if (!p().sinks || lse_[row] == -INFINITY) continue;
    const Index h = row / n % p().heads;
    const double sink = p().sinks(0, h, 0, 0);
    home.dsinks[h] -= static_cast<float>(std::exp(sink - lse_[row])) * row_delta_[row];  // (29)
  }
  return home;
}

}  // namespace ringproof::mpi
