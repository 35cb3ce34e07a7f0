// Owners and merge steps, against the layouts' definition and against rings that are played
// through.
#include "oracle/contract/ring_partition.hpp"

#include "oracle/contract/ring_bound.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

TEST_CASE("every position has the owner that the layouts define, for any N and P") {
  for (std::int64_t N = 1; N <= 40; ++N) {
    for (std::int64_t P = 1; P <= 12; ++P) {
      CAPTURE(N, P);
      for (std::int64_t rank = 0; rank < P; ++rank) {
        for (std::int64_t x = rank * N / P; x < (rank + 1) * N / P; ++x) {
          CHECK(owner_of(RingLayout::contiguous, x, N, P) == rank);
        }
        for (const std::int64_t chunk : {rank, 2 * P - 1 - rank}) {
          for (std::int64_t x = chunk * N / (2 * P); x < (chunk + 1) * N / (2 * P); ++x) {
            CHECK(owner_of(RingLayout::zigzag, x, N, P) == rank);
          }
        }
      }
      for (std::int64_t x = 0; x < N; ++x) {
        CHECK(owner_of(RingLayout::striped, x, N, P) == x % P);
      }
    }
  }
}

TEST_CASE("a shard is merged at the step at which the ring brings it") {
  for (const auto order : {RingOrder::down, RingOrder::up}) {
    for (std::int64_t P = 1; P <= 7; ++P) {
      for (std::int64_t rank = 0; rank < P; ++rank) {
        for (std::int64_t t = 0; t < P; ++t) {
          const std::int64_t held = order == RingOrder::down ? (rank - t + P) % P : (rank + t) % P;
          CHECK(merge_step(order, rank, held, P) == t);
        }
      }
    }
  }
}

TEST_CASE("steps without a visible key are left out, and the others keep their order") {
  RingSums sums;
  sums.step_of_key = {700'000, 3, 3, 1'000'000, 700'000};
  number_steps(5, sums);
  CHECK(sums.steps == 3);
  CHECK(sums.step_of_key == std::vector<std::int32_t>{1, 0, 0, 2, 1});
}

TEST_CASE("a partition that the spec does not determine is not assumed") {
  const auto known = [](auto change) {
    test::RowFixture fixture(8, 1, 1);
    fixture.problem.spec.ring = Ring{};
    change(fixture.problem);
    std::vector<std::int64_t> index{0, 3, 7};
    std::vector<std::int32_t> steps;
    return merge_steps(fixture.problem, 0, 7, 0, index.data(), 3, 4, steps);
  };
  CHECK(known([](Problem&) {}));
  CHECK_FALSE(known([](Problem& p) { p.spec.ring.reset(); }));
  CHECK_FALSE(known([](Problem& p) { p.queries = 4; }));
  CHECK_FALSE(known([](Problem& p) { p.position_k[3] = 8; }));
  CHECK_FALSE(known([](Problem& p) { p.position_q[7] = -1; }));
  CHECK_FALSE(known([](Problem& p) { p.document_k[2] = 1; }));
}
