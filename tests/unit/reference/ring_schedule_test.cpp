// The ring as integer functions (C5, C6, C7), exhaustive for up to 64 ranks.
#include "reference/ring_schedule.hpp"

#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using namespace ringproof::reference;

TEST_CASE("C5: at step t rank i holds block (i - t) mod P, for every P <= 64") {
  Index wrong = 0;
  for (Index P = 1; P <= 64; ++P) {
    // Blocks really handed on, seat by seat, in both directions.
    for (const Direction direction : {Direction::down, Direction::up}) {
      std::vector<Index> held(P);
      for (Index r = 0; r < P; ++r) held[r] = r;
      for (Index t = 0; t < step_count(P); ++t) {
        for (Index i = 0; i < P; ++i) {
          const Index expected = direction == Direction::down ? (i - t + P) % P : (i + t) % P;
          wrong += held[i] != expected || block_at(t, i, P, direction) != expected;
          wrong += step_of(held[i], i, P, direction) != t;
        }
        std::vector<Index> next(P);
        for (Index i = 0; i < P; ++i) next[send_to(i, P, direction)] = held[i];
        held = next;
      }
      // One more hop would bring every block home.
      for (Index r = 0; r < P; ++r) wrong += held[r] != r;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C6: in P steps every rank holds every block exactly once, for every P <= 64") {
  for (Index P = 1; P <= 64; ++P) {
    for (const Direction direction : {Direction::down, Direction::up}) {
      for (Index rank = 0; rank < P; ++rank) {
        std::set<Index> blocks;
        for (Index t = 0; t < step_count(P); ++t) blocks.insert(block_at(t, rank, P, direction));
        CHECK(static_cast<Index>(blocks.size()) == P);
      }
    }
  }
}

TEST_CASE(
    "C7: neighbours agree: to whom i sends, receives from i, and what was sent is what is held") {
  Index wrong = 0;
  for (Index P = 1; P <= 64; ++P) {
    for (const Direction direction : {Direction::down, Direction::up}) {
      for (Index i = 0; i < P; ++i) {
        const Index to = send_to(i, P, direction);
        wrong += receive_from(to, P, direction) != i;
        for (Index t = 0; transfers_after(t, P); ++t) {
          wrong += block_at(t + 1, to, P, direction) != block_at(t, i, P, direction);
        }
        wrong += block_at(P - 1, last_holder(i, P, direction), P, direction) != i;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("C7: erratum: a ring of P steps makes P - 1 transfers, not P") {
  for (Index P = 1; P <= 64; ++P) {
    Index transfers = 0;
    for (Index t = 0; t < step_count(P); ++t) transfers += transfers_after(t, P) ? 1 : 0;
    CHECK(transfers == P - 1);
  }
}
