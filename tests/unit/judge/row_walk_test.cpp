// Rows: numbered, sampled and shared out so that every one is visited once, whatever the threads
// do.
#include "oracle/judge/row_walk.hpp"

#include <atomic>
#include <map>
#include <set>
#include <stdexcept>

#include "oracle/judge/random_draw.hpp"
#include "tests/unit/case/case_builder.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("rows are numbered by batch, head and query") {
  const CaseBuilder builder = small_case(2, 4, 2, 5, 6);
  const Case input = builder.assemble();
  const RowSet rows(input.problem);
  CHECK(rows.size() == 40);
  CHECK(rows.row(0).i == 0);
  CHECK(rows.row(39).b == 1);
  CHECK(rows.row(39).h == 3);
  CHECK(rows.row(39).i == 4);
  CHECK(rows.row(27).b == 1);
  CHECK(rows.row(27).h == 1);
  CHECK(rows.row(27).i == 2);
}

TEST_CASE("a sample holds different rows, depends on the seed alone and is fair") {
  const CaseBuilder builder = small_case(1, 2, 1, 50, 3);
  const Case input = builder.assemble();
  std::map<std::int64_t, int> drawn;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const RowSet rows(input.problem, 10, seed), again(input.problem, 10, seed);
    REQUIRE(rows.size() == 10);
    std::int64_t before = -1;
    for (std::int64_t n = 0; n < 10; ++n) {
      const Row row = rows.row(n);
      const std::int64_t number = row.h * 50 + row.i;
      REQUIRE(number > before);
      before = number;
      REQUIRE(again.row(n).i == row.i);
      ++drawn[number];
    }
  }
  REQUIRE(drawn.size() == 100);  // 200 draws each are expected, 13.4 is one standard deviation
  for (const auto& [number, count] : drawn) CHECK(std::abs(count - 200) < 80);
}

TEST_CASE("draws are the published SplitMix64, and uniform below any bound") {
  std::uint64_t state = 0;
  CHECK(next_random(state) == 0xe220a8397b1dcdafULL);
  CHECK(next_random(state) == 0x6e789e6aa1b965f4ULL);
  // Of three quarters of all numbers a third lies in the first quarter; a remainder alone would put
  // half of them there.
  constexpr std::uint64_t kQuarter = 1ULL << 62;
  int low = 0;
  for (int n = 0; n < 3000; ++n) low += uniform_below(3 * kQuarter, state) < kQuarter;
  CHECK(low > 900);
  CHECK(low < 1100);
}

TEST_CASE("every row is visited once by any number of threads") {
  const CaseBuilder builder = small_case(2, 6, 3, 77, 4);
  const Case input = builder.assemble();
  const RowSet rows(input.problem);
  const std::vector<Chunk> chunks = chunks_of(input.problem, rows);
  for (const int threads : {1, 2, 5, 16}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(rows.size()));
    std::int64_t reported = 0;
    WalkOptions options;
    options.threads = threads;
    options.progress = [&](std::int64_t done, std::int64_t total) {
      CHECK(total == rows.size());
      reported = std::max(reported, done);
    };
    walk(input.problem, chunks, options,
         [&](std::size_t worker, std::size_t, const Chunk& chunk, const HeadTruth&) {
           if (worker >= worker_count(options)) throw std::logic_error("worker out of range");
           for (std::int64_t n = chunk.first; n < chunk.last; ++n) {
             const Row row = rows.row(n);
             if (row.b != chunk.b || input.problem.kv_head(row.h) != chunk.kv_head) {
               throw std::logic_error("a row of another head");
             }
             ++visits[static_cast<std::size_t>(n)];
           }
         });
    for (const auto& count : visits) REQUIRE(count == 1);
    CHECK(reported == rows.size());
  }
}

TEST_CASE("an exception in a thread ends the walk and is thrown to the caller") {
  const CaseBuilder builder = small_case(1, 8, 8, 100, 4);
  const Case input = builder.assemble();
  const RowSet rows(input.problem);
  const std::vector<Chunk> chunks = chunks_of(input.problem, rows);
  for (const int threads : {1, 4}) {
    WalkOptions options;
    options.threads = threads;
    CHECK_THROWS_WITH(walk(input.problem, chunks, options,
                           [&](std::size_t, std::size_t n, const Chunk&, const HeadTruth&) {
                             if (n >= 3) throw std::runtime_error("chunk failed");
                           }),
                      "chunk failed");
  }
}
