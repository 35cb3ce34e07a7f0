// Asynchronous copies: data arrives at the wait and is other threads' only after a barrier.
#include "cuda/device/instructions.cuh"
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using cuda_host::FaultClass;
using test::Outcome;
using test::run_block;

namespace {

alignas(16) float source[32 * 4];  // read by the copies

float* words() { return reinterpret_cast<float*>(cuda_host::dynamic_shared_memory()); }

/// Each thread copies four words, does `between`, then looks at the words of thread `n + distance`.
Outcome copy_then(unsigned distance, bool lazy, const std::function<void()>& between,
                  float* seen = nullptr) {
  for (int n = 0; n < 128; ++n) source[n] = static_cast<float>(n);
  const test::WithDevice device({.lazy_copies = lazy, .shared_checks = true});
  return run_block(32, 32 * 16, [=] {
    cuda::copy_async(words() + threadIdx.x * 4, source + threadIdx.x * 4, true);
    cuda::commit_copies();
    between();
    const float* word = words() + (threadIdx.x + distance) % 32 * 4;
    cuda_host::note_access(word, 4, cuda_host::Access::read, nullptr);
    if (seen != nullptr) seen[threadIdx.x] = *word;
  });
}

}  // namespace

TEST_CASE("data of a copy is there after its wait, for its own thread") {
  float seen[32] = {};
  for (const bool lazy : {true, false}) {
    CHECK(!copy_then(
               0, lazy, [] { cuda::wait_copies<0>(); }, seen)
               .fault);
    CHECK(seen[3] == 12);
  }
}

TEST_CASE("data of a copy is used before its wait: found whether it arrives late or at once") {
  for (const bool lazy : {true, false}) {
    const Outcome outcome = copy_then(0, lazy, [] { __syncthreads(); });
    CHECK(outcome.fault == FaultClass::in_flight);
    CHECK(copy_then(0, lazy, [] { cuda::wait_copies<1>(); }).fault == FaultClass::in_flight);
  }
}

TEST_CASE("data of another thread's copy needs its wait and then a barrier") {
  CHECK(!copy_then(1, true, [] {
           cuda::wait_copies<0>();
           __syncthreads();
         }).fault);
  CHECK(copy_then(1, true, [] { cuda::wait_copies<0>(); }).fault.has_value());
  CHECK(copy_then(1, true, [] {
          __syncthreads();
          cuda::wait_copies<0>();
        }).fault.has_value());
}

TEST_CASE("a copy that nobody waits for is a fault when its thread ends") {
  const Outcome outcome = run_block(32, 512, [] {
    cuda::copy_async(words() + threadIdx.x * 4, source + threadIdx.x * 4, true);
    cuda::commit_copies();
  });
  CHECK(outcome.fault == FaultClass::in_flight);
}

TEST_CASE("waiting for all but the youngest group completes the older ones only") {
  float seen[2] = {};
  const test::WithDevice device({.shared_checks = false});
  const Outcome outcome = run_block(32, 1024, [&] {
    float* first = words() + threadIdx.x * 4;
    float* second = first + 128;
    cuda::copy_async(first, source + threadIdx.x * 4, true);
    cuda::commit_copies();
    cuda::copy_async(second, source + threadIdx.x * 4, true);
    cuda::commit_copies();
    cuda::wait_copies<1>();
    if (threadIdx.x == 2) seen[0] = *first, seen[1] = *second;
    cuda::wait_copies<0>();
  });
  INFO(outcome.text);
  CHECK(seen[0] == 8);
  CHECK(std::isnan(seen[1]));
}

TEST_CASE("a copy from nowhere brings zeros") {
  float seen[4] = {1, 1, 1, 1};
  CHECK(!run_block(32, 512, [&] {
           cuda::copy_async(words() + threadIdx.x * 4, nullptr, false);
           cuda::commit_copies();
           cuda::wait_copies<0>();
           __syncthreads();
           if (threadIdx.x == 0) std::memcpy(seen, words() + 60, sizeof seen);
         }).fault);
  for (const float word : seen) CHECK(word == 0);
}

TEST_CASE("copies refuse addresses that are not aligned or not in shared memory") {
  const auto copy = [](std::size_t to, std::size_t from) {
    return run_block(32, 512 + 16,
                     [=] {
                       if (threadIdx.x > 0) return;
                       cuda::copy_async(cuda_host::dynamic_shared_memory() + to,
                                        reinterpret_cast<const char*>(source) + from, true);
                       cuda::commit_copies();
                       cuda::wait_copies<0>();
                     })
        .fault;
  };
  CHECK(!copy(0, 0));
  CHECK(copy(8, 0) == FaultClass::alignment);
  CHECK(copy(0, 4) == FaultClass::alignment);
  CHECK(copy(528, 0) == FaultClass::bounds);
}
