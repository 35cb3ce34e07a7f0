// Runs of visible keys (visible_terms.hpp).
#include "oracle/contract/visible_terms.hpp"

#include <algorithm>
#include <numeric>

namespace ringproof::oracle {

namespace {

/// True if the partials are those of a ring, whose ranks own keys by position; splits of one device
/// cut the key axis into contiguous pieces.
bool is_ring(const Contract& contract, const Problem& problem) {
  const auto& merge = contract.partials.merge;
  const auto has = [&](Merge form) { return std::count(merge.begin(), merge.end(), form) > 0; };
  return problem.spec.ring.has_value() || contract.backward.ring.count > 1 ||
         has(Merge::lse_sequential) || has(Merge::lse_sigmoid);
}

/// C: a run that lies on both sides of the end of a shard or chunk needs more tiles there. Behind
/// the end the grid of a rank starts anew: one tile more. The second chunk of a zigzag rank lies
/// behind its first at any alignment, which may cost two; but then the end of that first chunk
/// costs none, or the pieces on its two sides are neighbours on the rank. So 2R - 1 suffices for
/// the 2R - 1 ends.
std::int64_t cuts(const Contract& contract) {
  const std::int64_t R = contract.partials.count;
  return R == 1 ? 0 : 2 * R - 1;
}

/// Places of the visible keys in the order of their positions; a ring deals rows out in that order.
/// Empty if that is the order of the file.
std::vector<std::int64_t> places_by_position(const Problem& problem, const RowTruth& row,
                                             const RowKeys& keys) {
  const std::int64_t* position = problem.position_k.data() + row.b * problem.keys;
  if (std::is_sorted(position, position + problem.keys)) return {};
  std::vector<std::int64_t> order(static_cast<std::size_t>(problem.keys));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return position[a] < position[b]; });
  std::vector<std::int64_t> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    place[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  }
  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < keys.visible; ++k) {
    places.push_back(
        place[static_cast<std::size_t>(row.keys.first + keys.index[static_cast<std::size_t>(k)])]);
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

void visible_terms(const Contract& contract, const Problem& problem, const RowTruth& row,
                   const RowKeys& keys, Terms& terms) {
  const std::int64_t R = contract.partials.count;
  const bool ring = R > 1 && is_ring(contract, problem);
  const bool dealt =
      ring && (!problem.spec.ring || problem.spec.ring->layout == RingLayout::striped);
  terms.count = keys.visible;
  terms.cuts = cuts(contract);
  terms.dealt_to = dealt ? R : 1;
  terms.runs.clear();
  const auto places = ring ? places_by_position(problem, row, keys) : std::vector<std::int64_t>();
  const std::int64_t* place = places.empty() ? keys.index.data() : places.data();
  const std::int64_t offset = places.empty() ? row.keys.first : 0;
  terms.first_at_zero = keys.visible > 0 && place[0] + offset == 0;
  for (std::int64_t k = 0; k < keys.visible; ++k) {
    if (k > 0 && place[k] == place[k - 1] + 1) {
      ++terms.runs.back();
    } else {
      terms.runs.push_back(1);
    }
  }
}

void partial_terms(const Terms& all, std::int64_t max_keys, Terms& part) {
  part = all;
  if (max_keys == 0) return;
  part.count = std::min(all.count, max_keys);
  if (all.runs.size() == 1) part.runs.front() = part.count;
}

}  // namespace ringproof::oracle
