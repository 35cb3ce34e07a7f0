// Which blocks a rank must meet, and how far each block must travel: pure functions on integers,
// the same on every rank, so that a sender and a receiver always agree without asking.
// A block that a mask hides from all queries of a rank is not computed with there; a block that
// nobody ahead wants is not sent on. "Meets" may say yes for a block that turns out to show nothing
// (a dense mask, rows scattered inside a segment): that costs time, never the answer.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "reference/problem.hpp"
#include "reference/ring_schedule.hpp"
#include "reference/shard.hpp"

namespace ringproof::mpi {

using reference::Direction;
using reference::Index;
using reference::Layout;
using reference::Sharding;

/// Positions and documents of some rows of one batch, as ranges.
struct Segment {
  Index position_low = std::numeric_limits<Index>::max();
  Index position_high = std::numeric_limits<Index>::min();
  std::int32_t document_low = std::numeric_limits<std::int32_t>::max();
  std::int32_t document_high = -1;

  constexpr bool empty() const { return position_low > position_high; }
  void add(Index position, std::int32_t document) {
    if (document < 0) return;  // a row in no document meets nobody
    position_low = std::min(position_low, position);
    position_high = std::max(position_high, position);
    document_low = std::min(document_low, document);
    document_high = std::max(document_high, document);
  }
};

/// What decides visibility apart from dense masks and biases.
struct PositionRules {
  bool causal = false;
  Index window_left = -1, window_right = -1;
};

/// May some query of one segment see some key of the other?
constexpr bool may_see(const PositionRules& rules, const Segment& queries, const Segment& keys) {
  if (queries.empty() || keys.empty()) return false;
  if (queries.document_high < keys.document_low || keys.document_high < queries.document_low) {
    return false;
  }
  // Behind every query, or ahead of every query?
  const bool behind = keys.position_high < queries.position_low;
  const bool ahead = keys.position_low > queries.position_high;
  if (rules.causal && ahead) return false;
  if (behind) {
    return reference::window_allows(queries.position_low, keys.position_high, rules.window_left,
                                    rules.window_right);
  }
  if (ahead) {
    return reference::window_allows(queries.position_high, keys.position_low, rules.window_left,
                                    rules.window_right);
  }
  return true;
}

/// Rows of one rank in one batch.
struct Segments {
  std::vector<Segment> parts;  // a few, of consecutive rows each
  Segment all;                 // and all rows as one
};

/// Rows that follow each other in a rank's order, cut at most this often.
constexpr Index kSegments = 16;

/// `describe(row, segment)` adds a row of the problem to the segment it belongs to.
inline Segments segments_of(const Sharding& sharding, Index rank, const auto& describe) {
  const Index rows = reference::row_count(sharding, rank);
  const Index count = std::min(rows, kSegments);
  Segments segments{std::vector<Segment>(static_cast<std::size_t>(count)), {}};
  for (Index slot = 0; slot < rows; ++slot) {
    const Index row = reference::global_row(sharding, rank, slot);
    describe(row, segments.parts[static_cast<std::size_t>(slot * count / rows)]);
    describe(row, segments.all);
  }
  return segments;
}

/// All journeys of one problem on one ring. Steps count from 0; a block is with its owner then.
class Journeys {
 public:
  /// Reads sizes, positions, documents, lengths and rules of the problem, and none of its tensors.
  template <class Real>
  Journeys(const reference::Problem<Real>& problem, Layout layout, Index ranks, Direction direction)
      : ranks_(ranks), direction_(direction), meets_(static_cast<std::size_t>(ranks * ranks)) {
    const Sharding queries{layout, problem.queries, ranks}, keys{layout, problem.keys, ranks};
    const PositionRules rules{problem.causal, problem.window_left, problem.window_right};
    for (Index b = 0; b < problem.batches; ++b) {
      std::vector<Segments> of_queries, of_keys;
      for (Index r = 0; r < ranks; ++r) {
        of_queries.push_back(segments_of(queries, r, [&](Index i, Segment& segment) {
          segment.add(reference::query_position(problem, b, i),
                      problem.document_q ? problem.document_q(b, 0, i, 0) : 0);
        }));
        of_keys.push_back(segments_of(keys, r, [&](Index j, Segment& segment) {
          if (problem.key_lengths && j >= problem.key_lengths(b, 0, 0, 0)) return;
          segment.add(reference::key_position(problem, b, j),
                      problem.document_k ? problem.document_k(b, 0, j, 0) : 0);
        }));
      }
      for (Index r = 0; r < ranks; ++r) {
        for (Index block = 0; block < ranks; ++block) {
          if (any_pair(rules, of_queries[r], of_keys[block])) meets_[r * ranks + block] = 1;
        }
      }
    }
    for (Index block = 0; block < ranks; ++block) wanted_.push_back(span_of(block));
  }

  Index ranks() const { return ranks_; }
  Direction direction() const { return direction_; }
  bool meets(Index rank, Index block) const { return meets_[rank * ranks_ + block] != 0; }
  Index block_at(Index step, Index rank) const {
    return reference::block_at(step, rank, ranks_, direction_);
  }
  /// Who holds a block at a step of its journey.
  Index holder(Index block, Index step) const {
    return reference::modulo(direction_ == Direction::down ? block + step : block - step, ranks_);
  }

  /// First and last step at which a holder wants the block; {P, -1} if nobody does.
  struct Span {
    Index first, last;
    bool nobody() const { return last < first; }
  };
  Span wanted(Index block) const { return wanted_[block]; }

  /// Does the block move on after a step?
  bool block_moves(Index block, Index step) const { return step < wanted(block).last; }
  /// Does its gradient move on with it? It begins where the block is first wanted.
  bool gradient_moves(Index block, Index step) const {
    const Span span = wanted(block);
    return step >= span.first && step < span.last;
  }
  /// The rank from which the gradient comes home, straight; -1 if it never left, or never began.
  Index home_from(Index block) const {
    const Span span = wanted(block);
    return span.nobody() || span.last == 0 ? -1 : holder(block, span.last);
  }

 private:
  /// What all rows together cannot see, no part can. Late queries first: under a causal mask they
  /// see most.
  static bool any_pair(const PositionRules& rules, const Segments& queries, const Segments& keys) {
    if (!may_see(rules, queries.all, keys.all)) return false;
    return std::any_of(queries.parts.rbegin(), queries.parts.rend(), [&](const Segment& q) {
      return std::any_of(keys.parts.begin(), keys.parts.end(),
                         [&](const Segment& k) { return may_see(rules, q, k); });
    });
  }

  Span span_of(Index block) const {
    Span span{ranks_, -1};
    for (Index step = 0; step < ranks_; ++step) {
      if (!meets(holder(block, step), block)) continue;
      span.first = std::min(span.first, step);
      span.last = step;
    }
    return span;
  }

  Index ranks_;
  Direction direction_;
  std::vector<std::uint8_t> meets_;  // [P ranks, P blocks]
  std::vector<Span> wanted_;         // [P blocks]
};

}  // namespace ringproof::mpi
