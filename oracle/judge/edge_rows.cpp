#include "oracle/judge/edge_rows.hpp"

#include <array>
#include <utility>

#include "oracle/contract/ring_partition.hpp"
#include "oracle/judge/random_draw.hpp"

namespace ringproof::oracle {

namespace {

/// Kernels tile queries by 64 or a multiple of it.
constexpr std::int64_t kTile = 64;

/// True if another rank owns the next position. On a striped ring that is so everywhere, and
/// nothing is an edge; a ring whose layout is not stated is taken to be contiguous.
bool rank_changes(const Problem& problem, std::int64_t position, std::int64_t next) {
  const std::int64_t ranks = problem.spec.ranks.value_or(1);
  const auto& ring = problem.spec.ring;
  const RingLayout layout = ring ? ring->layout : RingLayout::contiguous;
  if (ranks <= 1 || layout == RingLayout::striped) return false;
  const auto inside = [&](std::int64_t p) { return p >= 0 && p < problem.keys; };
  return inside(position) && inside(next) &&
         owner_of(layout, position, problem.keys, ranks) !=
             owner_of(layout, next, problem.keys, ranks);
}

void shuffle(std::vector<std::int64_t>& rows, std::uint64_t& state) {
  for (std::size_t n = rows.size(); n > 1; --n) {
    std::swap(rows[n - 1], rows[uniform_below(n, state)]);
  }
}

}  // namespace

int edge_class(const Problem& problem, std::int64_t b, std::int64_t i) {
  const std::int64_t last = problem.queries - 1;
  if (i == 0 || i == last) return 0;
  const auto at = [&](const auto& of_rows, std::int64_t n) {
    return of_rows[static_cast<std::size_t>(b * problem.queries + n)];
  };
  for (const std::int64_t other : {i - 1, i + 1}) {
    if (at(problem.document_q, i) != at(problem.document_q, other)) return 0;
    if (rank_changes(problem, at(problem.position_q, i), at(problem.position_q, other))) return 0;
  }
  return i % kTile == 0 || i % kTile == kTile - 1 ? 1 : 2;
}

std::vector<std::int64_t> edges_first(const Problem& problem, std::uint64_t seed) {
  std::array<std::vector<std::int64_t>, 3> classes;
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t i = 0; i < problem.queries; ++i) {
      auto& rows = classes[static_cast<std::size_t>(edge_class(problem, b, i))];
      for (std::int64_t h = 0; h < problem.heads; ++h) {
        rows.push_back((b * problem.heads + h) * problem.queries + i);
      }
    }
  }
  std::vector<std::int64_t> order;
  for (auto& rows : classes) {
    shuffle(rows, seed);
    order.insert(order.end(), rows.begin(), rows.end());
  }
  return order;
}

}  // namespace ringproof::oracle
