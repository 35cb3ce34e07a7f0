// What the ring allocates (C9, C12, C13), counted by the test's own operator new. All ranks live in
// this one process, so the high-water mark is that of P ranks together; scores exist for one rank
// at a time.
#include <cmath>
#include <cstdlib>
#include <new>

#include "reference/ring.hpp"
#include "tests/support/catch.hpp"

namespace {

struct Ledger {
  long live = 0, peak = 0, largest = 0;
};
Ledger ledger;
constexpr std::size_t kHeader = alignof(std::max_align_t);

}  // namespace

namespace {

/// Memory with its size written before it; null if there is none.
void* take(std::size_t size) noexcept {
  auto* memory = static_cast<std::byte*>(std::malloc(size + kHeader));
  if (memory == nullptr) return nullptr;
  *reinterpret_cast<std::size_t*>(memory) = size;
  ledger.live += static_cast<long>(size);
  ledger.peak = std::max(ledger.peak, ledger.live);
  ledger.largest = std::max(ledger.largest, static_cast<long>(size));
  return memory + kHeader;
}

void* take_or_throw(std::size_t size) {
  void* memory = take(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* pointer) noexcept {
  if (pointer == nullptr) return;
  auto* memory = static_cast<std::byte*>(pointer) - kHeader;
  ledger.live -= static_cast<long>(*reinterpret_cast<std::size_t*>(memory));
  std::free(memory);
}

}  // namespace

// All forms at once: sanitizers bring their own of those that are left out, and the two do not mix.
void* operator new(std::size_t size) { return take_or_throw(size); }
void* operator new[](std::size_t size) { return take_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void operator delete(void* pointer) noexcept { give_back(pointer); }
void operator delete[](void* pointer) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }

using namespace ringproof::reference;

namespace {

constexpr Index kRows = 64, kWidth = 8;  // b rows a rank, D = Dv = d
constexpr long kNumber = sizeof(double);
constexpr long kBlock = 2 * kRows * kWidth * kNumber;  // the K and V of one rank
constexpr long kQueries = kRows * kWidth * kNumber;
constexpr long kScores = kRows * kRows * kNumber;  // [b, b]

struct Usage {
  long peak, largest;  // bytes: most alive at once, and the largest single allocation
};

/// High-water mark of a ring of P ranks with kRows rows each, beyond what was there before it
/// began.
Usage measure(Index P, bool keep_own_block) {
  const std::vector<double> numbers(P * kRows * kWidth, 0.5);
  Problem<double> problem{
      .queries = P * kRows, .keys = P * kRows, .head_dim = kWidth, .value_dim = kWidth};
  problem.q = problem.k = problem.v = row_major<double>(numbers, {1, 1, P * kRows, kWidth});
  auto shards = scatter(problem, Layout::contiguous, P);
  Trace trace;
  trace.reserve(3 * P * P);
  const long before = ledger.live;
  ledger.peak = ledger.live;
  ledger.largest = 0;
  if (keep_own_block) {
    ring(problem, Direction::down, shards, trace);  // copied: the caller keeps them
  } else {
    ring(problem, Direction::down, std::move(shards), trace);
  }
  return {ledger.peak - before, ledger.largest};
}

}  // namespace

TEST_CASE("C9: no tensor larger than [b, b] scores is ever allocated, whatever P") {
  for (Index P = 2; P <= 16; P *= 2) {
    CHECK(measure(P, false).largest == kScores);
    CHECK(measure(P, true).largest == kScores);
  }
}

TEST_CASE("C12: at fixed b a rank's high-water mark is flat within 1 % for P = 2 ... 16") {
  for (const bool keep : {false, true}) {
    // What one more rank adds; the scratch of the rank that computes is there once for all of them.
    // (A ring of one has no transfer, so it is no measure.)
    const long first = measure(3, keep).peak - measure(2, keep).peak;
    const long scratch = measure(2, keep).peak - 2 * first;
    CHECK(scratch < kScores + kBlock);
    for (Index P = 4; P <= 16; ++P) {
      const long added = measure(P, keep).peak - measure(P - 1, keep).peak;
      CHECK(std::abs(added - first) * 100 <= first);
    }
  }
}

TEST_CASE(
    "C13: a rank that gives its own block away holds two; one that keeps it, three (erratum)") {
  for (Index P = 2; P <= 16; ++P) {
    const long given = measure(P, false).peak, kept = measure(P, true).peak;
    // Beyond its shard a rank has one visiting block and its states (m, l and the bd of o).
    const long states = given / P - kBlock;
    CHECK(states > kQueries);
    CHECK(given <
          P * (kBlock + 2 * kQueries + kRows * static_cast<long>(sizeof(RowState<double>))) +
              kScores);
    // Keeping the shard costs exactly one more block (and here a second copy of the queries).
    CHECK(kept - given == P * (kBlock + kQueries + static_cast<long>(sizeof(Shard<double>))));
  }
}
