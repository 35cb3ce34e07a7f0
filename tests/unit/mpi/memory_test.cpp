// What one rank of the real ring allocates (C12, C13), by the test's own operator new, which counts
// for each thread apart: ranks are threads here, so each has a ledger of its own.
#include <cmath>
#include <cstdlib>
#include <new>

#include "mpi/tile_simd.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/mpi/local_ring.hpp"

namespace {

struct Ledger {
  long live = 0, peak = 0;
};
thread_local Ledger ledger;
constexpr std::size_t kHeader = 64;  // keeps any alignment that is asked for

/// Memory with its size written before it; null if there is none.
void* take(std::size_t size) noexcept {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHeader, (size / 64 + 2) * 64));
  if (memory == nullptr) return nullptr;
  *reinterpret_cast<std::size_t*>(memory) = size;
  ledger.live += static_cast<long>(size);
  ledger.peak = std::max(ledger.peak, ledger.live);
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
void* operator new(std::size_t size, std::align_val_t) { return take_or_throw(size); }
void* operator new[](std::size_t size, std::align_val_t) { return take_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void operator delete(void* pointer) noexcept { give_back(pointer); }
void operator delete[](void* pointer) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept {
  give_back(pointer);
}
void operator delete(void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }

using namespace ringproof;
using namespace ringproof::mpi;

namespace {

constexpr Index kRows = 192, kWidth = 256;  // b rows a rank, D = Dv = d
constexpr long kBlock = 2 * kRows * kWidth * static_cast<long>(sizeof(float));

/// High-water mark of the middle rank's forward pass, beyond its own part of the problem. Messages
/// between threads are noted in small allocations that one thread makes and another gives back; the
/// blocks are large enough for that not to matter.
long peak_of_a_rank(Index P, OwnBlock own, bool vectors) {
  const std::vector<float> numbers(P * kRows * kWidth, 0.5f);
  reference::Problem<float> problem{
      .queries = P * kRows, .keys = P * kRows, .head_dim = kWidth, .value_dim = kWidth};
  problem.q = problem.k = problem.v =
      reference::row_major<float>(numbers, {1, 1, P * kRows, kWidth});
  // Blocks travel, since a dense mask has no say in that, but nothing need be multiplied.
  const std::vector<std::uint8_t> nobody(1, 0);
  problem.mask = reference::row_major<std::uint8_t>(nobody, {1, 1, 1, 1});
  long peak = 0;
  run_ranks(P, {.rendezvous = true}, [&](Transport& transport) {
    const Journeys journeys(problem, Layout::contiguous, P, reference::Direction::down);
    auto mine =
        deal(problem, MemorySource<float>{problem, {}}, Layout::contiguous, P, transport.rank());
    reference::Trace trace;
    trace.reserve(static_cast<std::size_t>(4 * P));
    const long before = ledger.live;
    ledger.peak = before;
    const auto tile =
        vectors ? make_simd_tile(std::move(mine), 1, {}) : make_scalar_tile<float>(std::move(mine));
    BlockBuffers buffers(largest_block(*tile, P), own);
    ring_forward(transport, journeys, *tile, buffers, trace);
    if (transport.rank() == P / 2) peak = ledger.peak - before;
  });
  return peak;
}

}  // namespace

TEST_CASE("C12: at fixed b a rank's high-water mark is flat within 1 % for P = 2 ... 16") {
  for (const bool vectors : {false, true}) {
    for (const OwnBlock own : {OwnBlock::given, OwnBlock::kept}) {
      const long first = peak_of_a_rank(2, own, vectors);
      for (const Index P : {3, 4, 8, 16}) {
        const long peak = peak_of_a_rank(P, own, vectors);
        INFO("P " << P << ": " << peak << " bytes, P 2: " << first);
        CHECK(std::abs(peak - first) * 100 <= first);
      }
    }
  }
}

TEST_CASE("C13: keeping the own block costs exactly one more buffer, and there are two or three") {
  for (const bool vectors : {false, true}) {
    for (const Index P : {2, 5}) {
      const long given = peak_of_a_rank(P, OwnBlock::given, vectors);
      const long kept = peak_of_a_rank(P, OwnBlock::kept, vectors);
      INFO("given " << given << ", kept " << kept << ", block " << kBlock);
      CHECK(std::abs(kept - given - kBlock) * 100 <= kBlock);
    }
  }
  CHECK(BlockBuffers(8, OwnBlock::given).count() == 2);
  CHECK(BlockBuffers(8, OwnBlock::kept).count() == 3);
}

TEST_CASE("C9: the vector tile holds no scores beyond one tile, far below [b, b]") {
  const long scalar = peak_of_a_rank(2, OwnBlock::given, false);
  const long vectors = peak_of_a_rank(2, OwnBlock::given, true);
  const long scores = kRows * kRows * static_cast<long>(sizeof(float));
  const long states = (kRows + kRows % 48) * (kWidth + 2) * static_cast<long>(sizeof(float));
  INFO("scalar " << scalar << ", vectors " << vectors << ", scores " << scores);
  CHECK(scalar > 2 * kBlock + scores);
  CHECK(vectors < 2 * kBlock + 2 * states + scores / 4);
}
