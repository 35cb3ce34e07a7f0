// reference/block_attention.hpp and reference/backward.hpp on blocks of bytes (tile_scalar.hpp).
#include "mpi/tile_scalar.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringproof::mpi {
namespace {

using namespace ringproof::reference;

template <class Real>
class ScalarTile final : public Tile<Real> {
 public:
  explicit ScalarTile(RankProblem<Real> mine)
      : mine_(std::move(mine)), shard_{mine_.queries(), 0, std::move(mine_.q)} {
    states_ = empty_states(mine_.problem, shard_);
  }

  const RankProblem<Real>& mine() const override { return mine_; }

  std::size_t block_bytes(Index origin) const override {
    return this->gradient_size(origin) * sizeof(Real);
  }

  void pack_block(std::span<std::byte> block) override {
    const std::size_t k_bytes = mine_.k.size() * sizeof(Real);
    std::copy_n(reinterpret_cast<const std::byte*>(mine_.k.data()), k_bytes, block.begin());
    std::copy_n(reinterpret_cast<const std::byte*>(mine_.v.data()), mine_.v.size() * sizeof(Real),
                block.begin() + static_cast<std::ptrdiff_t>(k_bytes));
    release(mine_.k);
    release(mine_.v);
  }

  Index absorb(Index origin, std::span<const std::byte> block) override {
    const KeyView<Real> keys = view(origin, block);
    Index pairs = 0;
    for (const Head& head : all_heads(mine_.problem)) {
      const Matrix<Real> S = scores(mine_.problem, head, shard_, keys);
      online_softmax(mine_.problem, head, states_, S, keys);
      pairs += visible_pairs(S);
    }
    return pairs;
  }

  ShardAnswer<Real> finish() override {
    ShardAnswer<Real> answer = finish_rank(mine_.problem, shard_, states_);
    release(states_);
    return answer;
  }

  void begin_backward(const ShardAnswer<Real>& answer) override {
    upstream_ = {mine_.dout, answer.lse,
                 row_delta<Real>(mine_.dout, answer.out, answer.lse, mine_.dlse)};
    home_ = no_query_gradient(mine_.problem, shard_);
  }

  void gradient(Index origin, std::span<const std::byte> block, std::span<Real> part) override {
    const KeyGradient<Real> sums =
        backward_block(mine_.problem, shard_, upstream_, view(origin, block), home_);
    std::copy(sums.dk.begin(), sums.dk.end(), part.begin());
    std::copy(sums.dv.begin(), sums.dv.end(),
              part.begin() + static_cast<std::ptrdiff_t>(sums.dk.size()));
  }

  QueryGradient<Real> finish_backward() override {
    add_sink_gradients(mine_.problem, shard_, upstream_, home_);
    return std::move(home_);
  }

 private:
  /// The numbers of a block; buffers of the ring are aligned for any type.
  KeyView<Real> view(Index origin, std::span<const std::byte> block) const {
    const auto& problem = mine_.problem;
    const auto keys = static_cast<std::size_t>(row_count(mine_.keys, origin) * problem.batches *
                                               problem.kv_heads);
    const std::span numbers(reinterpret_cast<const Real*>(block.data()),
                            block.size() / sizeof(Real));
    return {mine_.keys, origin, numbers.first(keys * static_cast<std::size_t>(problem.head_dim)),
            numbers.subspan(keys * static_cast<std::size_t>(problem.head_dim))};
  }

  RankProblem<Real> mine_;
  QueryShard<Real> shard_;
  States<Real> states_;
  UpstreamShard<Real> upstream_;
  QueryGradient<Real> home_;
};

}  // namespace

template <class Real>
std::unique_ptr<Tile<Real>> make_scalar_tile(RankProblem<Real> mine) {
  return std::make_unique<ScalarTile<Real>>(std::move(mine));
}

template std::unique_ptr<Tile<float>> make_scalar_tile(RankProblem<float>);
template std::unique_ptr<Tile<double>> make_scalar_tile(RankProblem<double>);

}  // namespace ringproof::mpi
