// Balance of causal rings, counted and compared with formulas derived by hand (C17, C18).
#include "reference/balance.hpp"

#include "reference/mask.hpp"
#include "tests/support/property.hpp"

using namespace ringproof;
using namespace ringproof::reference;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
const PositionMask kCausal{.causal = true};

Index pairs_of_step(const Workload& work, Index step) {
  Index sum = 0;
  for (Index rank = 0; rank < work.ranks; ++rank) sum += work.at(step, rank);
  return sum;
}

Index most_pairs(const Workload& work) {
  Index most = 0;
  for (Index rank = 0; rank < work.ranks; ++rank) most = std::max(most, work.of_rank(rank));
  return most;
}

}  // namespace

TEST_CASE(
    "C6: each visible pair is counted at exactly one step of one rank, layouts, masks, N mod P") {
  const PositionMask masks[] = {{},
                                kCausal,
                                {.causal = true, .window_left = 3},
                                {.window_left = 2, .window_right = 4},
                                {.window_right = 0}};
  Index wrong = 0;
  for (const Layout layout : kLayouts) {
    for (const PositionMask& mask : masks) {
      for (Index rows = 0; rows <= 20; ++rows) {
        for (Index P = 1; P <= 7; ++P) {
          const Sharding sharding{layout, rows, P};
          const Workload work = workload(sharding, mask, Direction::down);
          std::vector<Index> expected(work.pairs.size(), 0);  // from the mask itself, pair by pair
          for (Index i = 0; i < rows; ++i) {
            for (Index j = 0; j < rows; ++j) {
              if (mask.causal && !causal_allows(i, j)) continue;
              if (!window_allows(i, j, mask.window_left, mask.window_right)) continue;
              const Index rank = owner(sharding, i);
              const Index step = step_of(owner(sharding, j), rank, P, Direction::down);
              ++expected[step * P + rank];
            }
          }
          wrong += work.pairs != expected;
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "C17: contiguous causal ring: the last rank works most and the idle share tends to one half") {
  const Index b = 8;
  double previous = -1;
  for (Index P = 2; P <= 256; P *= 2) {
    const Workload work = workload({Layout::contiguous, P * b, P}, kCausal, Direction::down);
    CHECK(work.of_rank(P - 1) == most_pairs(work));
    // Step 0 lasts b(b+1)/2, every later step b^2; the useful pairs are b P (b P + 1) / 2.
    CHECK(work.duration() == b * (b + 1) / 2 + (P - 1) * b * b);
    CHECK(work.total() == b * P * (b * P + 1) / 2);
    CHECK(work.idle_fraction() > previous);  // rises towards its limit
    CHECK(work.idle_fraction() < 0.5);
    previous = work.idle_fraction();
    // Exactly: 1 - (b P + 1) / (b + 1 + 2 b (P - 1)), so short of 1/2 by less than 1 / P.
    CHECK(0.5 - work.idle_fraction() < 1 / static_cast<double>(P));
  }
}

TEST_CASE("C18: zig-zag with 2 P | N gives every rank the same work, in every single step") {
  for (Index P = 1; P <= 16; ++P) {
    for (Index c = 1; c <= 6; ++c) {
      const Workload work = workload({Layout::zigzag, 2 * P * c, P}, kCausal, Direction::down);
      for (Index step = 0; step < P; ++step) {
        for (Index rank = 0; rank < P; ++rank) {
          CHECK(work.at(step, rank) == 2 * c * c + (step == 0 ? c : 0));
        }
      }
    }
  }
}

TEST_CASE(
    "C18: striped with N = b P: work of the busiest rank over the mean is (b + 1)/(b + 1/P) "
    "exactly") {
  for (Index P = 1; P <= 16; ++P) {
    for (Index b = 1; b <= 12; ++b) {
      const Workload work = workload({Layout::striped, P * b, P}, kCausal, Direction::down);
      CHECK(most_pairs(work) * (b * P + 1) == (b + 1) * work.total());
      // A single step deals b(b+1)/2 pairs to some ranks and b(b-1)/2 to the others.
      for (Index step = 0; b > 1 && step < P; ++step) {
        CHECK(work.busiest(step) * P * (b - 1) <= (b + 1) * pairs_of_step(work, step));
      }
    }
  }
}

TEST_CASE("C18: for every N and P both balanced layouts keep max/mean <= 1 + 2/b, b = N/P") {
  // Zig-zag: with chunk ends at the real numbers a N / (2 P) both chunks of a rank together hold
  // exactly the mean, N (N + 1) / (2 P); rounding down a chunk's begin x adds less than x + 1/2,
  // and the two begins of a rank sum to less than N. Striped: a rank's rows see at most N, N - P, N
  // - 2 P ... keys, together at most N + N^2 / (2 P). Either way at most N more than the mean, a
  // share of 2 P / N.
  Index wrong = 0;
  for (Index P = 1; P <= 12; ++P) {
    for (Index rows = 1; rows <= 80; ++rows) {
      for (const Layout layout : {Layout::zigzag, Layout::striped}) {
        const Workload work = workload({layout, rows, P}, kCausal, Direction::down);
        wrong += most_pairs(work) * P * rows > (rows + 2 * P) * work.total();
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C18: both balanced layouts beat the contiguous one, by almost two") {
  for (const Index P : {4, 8, 16, 64}) {
    const Index b = 32;
    const Workload naive = workload({Layout::contiguous, P * b, P}, kCausal, Direction::down);
    for (const Layout layout : {Layout::zigzag, Layout::striped}) {
      const Workload work = workload({layout, P * b, P}, kCausal, Direction::down);
      CHECK(work.total() == naive.total());
      CHECK(work.duration() < naive.duration());
      CHECK(20 * work.idle_fraction() < 1);
    }
  }
}
