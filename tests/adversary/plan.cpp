// Drawing one conforming kernel out of a contract (plan.hpp).
#include "tests/adversary/plan.hpp"

#include <algorithm>
#include <numeric>

#include "tests/adversary/accumulate.hpp"
#include "tests/emulate/layout.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Merge;
using oracle::RingLayout;

std::int64_t pick(std::mt19937_64& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

const oracle::Accumulator& one_of(const oracle::Accumulator& model, std::mt19937_64& random) {
  if (model.model != oracle::Accumulator::Model::max) return model;
  return one_of(
      model.of[static_cast<std::size_t>(pick(random, static_cast<std::int64_t>(model.of.size())))],
      random);
}

/// Partials of a ring: with a declared ring its own order, else any layout and any order of ranks.
void place_on_ring(const oracle::Contract& contract, const Row& row, std::mt19937_64& random,
                   Plan& plan) {
  const std::int64_t ranks = contract.partials.count;
  RingLayout layout = static_cast<RingLayout>(pick(random, 3));
  std::vector<int> step(static_cast<std::size_t>(ranks));
  std::iota(step.begin(), step.end(), 0);
  if (row.ring) {
    layout = row.ring->layout;
    const std::int64_t own =
        emulate::owner_of(layout, row.query_position, row.total_keys, ranks).rank;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      step[static_cast<std::size_t>(rank)] =
          static_cast<int>(emulate::step_of(row.ring->order, own, rank, ranks));
  } else {
    std::shuffle(step.begin(), step.end(), random);
  }
  for (std::int64_t j = 0; j < row.visible(); ++j) {
    const emulate::Ownership owner =
        emulate::owner_of(layout, row.position[static_cast<std::size_t>(j)], row.total_keys, ranks);
    const int partial = step[static_cast<std::size_t>(owner.rank)];
    plan.partial.push_back(partial);
    plan.place.push_back(owner.place);
    plan.partial_size[static_cast<std::size_t>(partial)] = owner.rows;
  }
}

/// Partials of a split or decode kernel: contiguous ranges of at most `longest` positions.
void place_on_splits(const oracle::Contract& contract, const Row& row, Plan& plan) {
  const std::int64_t count = contract.partials.count;
  std::int64_t length = (row.total_keys + count - 1) / count;
  if (contract.partials.max_keys > 0) length = std::min(length, contract.partials.max_keys);
  for (const std::int64_t position : row.position) {
    const std::int64_t partial = std::min(count - 1, position / length);
    plan.partial.push_back(static_cast<int>(partial));
    plan.place.push_back(position - partial * length);
  }
  plan.partial_size.assign(static_cast<std::size_t>(count), length);
}

std::int64_t block_of(const oracle::Contract& contract, const Plan& plan, std::mt19937_64& random) {
  using Model = oracle::Accumulator::Model;
  const bool whole = plan.l.model == Model::tree || plan.pv.model == Model::tree;
  if (whole) return std::int64_t{1} << 40;
  const std::int64_t unit =
      std::lcm(contract.softmax.block, std::lcm(tile_unit(plan.l), tile_unit(plan.pv)));
  return unit * (pick(random, 4) == 0 ? 2 : 1);
}

}  // namespace

Plan draw_plan(const oracle::Contract& contract, const Row& row, std::mt19937_64& random) {
  Plan plan{.score = one_of(contract.score.acc, random),
            .l = one_of(contract.l.acc, random),
            .pv = one_of(contract.pv.acc, random)};
  const std::vector<Merge>& merges = contract.partials.merge;
  plan.merge =
      merges[static_cast<std::size_t>(pick(random, static_cast<std::int64_t>(merges.size())))];
  plan.carried = plan.merge == Merge::unnormalized && pick(random, 3) == 0;
  const bool may_normalize = plan.merge != Merge::unnormalized;
  plan.normalized =
      contract.p.normalized == oracle::Tri::yes ||
      (contract.p.normalized == oracle::Tri::any && may_normalize && pick(random, 3) == 0);
  plan.partial_size.assign(
      static_cast<std::size_t>(std::max<std::int64_t>(1, contract.partials.count)), 0);
  const bool ring = plan.merge == Merge::lse_sequential || plan.merge == Merge::lse_sigmoid ||
                    row.ring || merges.size() > 1;
  if (contract.partials.count > 1 && ring)
    place_on_ring(contract, row, random, plan);
  else if (contract.partials.count > 1)
    place_on_splits(contract, row, plan);
  else {
    plan.partial.assign(row.position.size(), 0);
    plan.place = row.position;
    plan.partial_size = {row.total_keys};
  }
  plan.block = block_of(contract, plan, random);
  switch (contract.softmax.order) {
    case oracle::BlockOrder::ascending:
      plan.order = Plan::Order::ascending;
      break;
    case oracle::BlockOrder::descending:
      plan.order = Plan::Order::descending;
      break;
    case oracle::BlockOrder::any:
      plan.order = static_cast<Plan::Order>(pick(random, 3));
      break;
  }
  plan.shuffle_seed = random();
  plan.sink_partial =
      static_cast<int>(pick(random, static_cast<std::int64_t>(plan.partial_size.size())));
  plan.sink_first = pick(random, 2) == 0;
  // Behind a softcap or a bias there are no raw units left: the constant belongs to the dot product
  // alone.
  const bool raw_units = row.softcap == 0 && row.bias.empty() && row.alibi.empty();
  plan.sink_scaled = raw_units && pick(random, 3) == 0;
  plan.lse_exact_scale = raw_units && pick(random, 3) == 0;
  return plan;
}

}  // namespace ringproof::adversary
