// Shared memory: races, words that nobody wrote, indices beyond the end. Each is found, and the
// same program with its barrier passes, in every order of threads.
#include "cuda/device/instructions.cuh"
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using cuda_host::FaultClass;
using test::Outcome;
using test::run_block;

// Plain loads and stores are seen through the compiler's instrumentation, which another sanitizer
// takes the place of.
#if RINGPROOF_CUDA_CHECKED

namespace {

/// How the threads between two accesses are ordered.
enum class Barrier { none, warp, block };

void pass(Barrier barrier) {
  if (barrier == Barrier::warp) __syncwarp();
  if (barrier == Barrier::block) __syncthreads();
}

float* words() { return reinterpret_cast<float*>(cuda_host::dynamic_shared_memory()); }

/// Every thread writes its word, then reads that of the thread `distance` further on.
Outcome exchange(unsigned threads, unsigned distance, Barrier barrier) {
  return run_block(threads, threads * sizeof(float), [=] {
    float* shared = words();
    shared[threadIdx.x] = 1;
    pass(barrier);
    volatile float neighbour = shared[(threadIdx.x + distance) % threads];
    (void)neighbour;
  });
}

}  // namespace

TEST_CASE("reading what another thread wrote needs a barrier that both threads share") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const test::WithDevice device({.seed = seed});
    CHECK(exchange(64, 1, Barrier::none).fault.has_value());
    CHECK(!exchange(64, 1, Barrier::block).fault);
    CHECK(!exchange(32, 1, Barrier::warp).fault);              // one warp
    CHECK(exchange(64, 32, Barrier::warp).fault.has_value());  // two warps
  }
}

TEST_CASE("a read after a write without a barrier is a race, with both lines") {
  const int line = __LINE__ + 4;
  const Outcome outcome = run_block(64, 4, [] {
    float* shared = words();
    if (threadIdx.x == 0) {
      shared[0] = 1;
    }
    if (threadIdx.x == 33) {
      volatile float read = shared[0];
      (void)read;
    }
  });
  CHECK(outcome.fault == FaultClass::shared_race);
  CHECK(test::names(outcome, "read after write"));
  CHECK(test::names(outcome, "shared_memory_test.cpp:" + std::to_string(line)));
  CHECK(test::names(outcome, "shared_memory_test.cpp:" + std::to_string(line + 3)));
}

TEST_CASE("a write after a read without a barrier is a race; with one it is none") {
  const auto program = [](Barrier barrier) {
    return run_block(64, 64 * sizeof(float), [=] {
      float* shared = words();
      shared[threadIdx.x] = 1;
      __syncthreads();
      volatile float read = shared[(threadIdx.x + 1) % 64];
      pass(barrier);
      shared[threadIdx.x] = read + 1;
    });
  };
  CHECK(program(Barrier::none).fault == FaultClass::shared_race);
  CHECK(program(Barrier::warp).fault == FaultClass::shared_race);
  CHECK(!program(Barrier::block).fault);
}

TEST_CASE("two writes to one word are a race; two halves of a word are two places") {
  CHECK(run_block(32, 64, [] { words()[0] = 1; }).fault == FaultClass::shared_race);
  CHECK(!run_block(32, 64, [] {
           reinterpret_cast<std::uint16_t*>(cuda_host::dynamic_shared_memory())[threadIdx.x] = 1;
         }).fault);
}

TEST_CASE("shared memory that nobody wrote is no number, and reading it is a fault") {
  const Outcome outcome = run_block(32, 256, [] {
    volatile float read = words()[threadIdx.x];
    (void)read;
  });
  CHECK(outcome.fault == FaultClass::uninitialised);
  float read = 0;
  const test::WithDevice device({.shared_checks = false});
  CHECK(!run_block(32, 256, [&] { read = words()[3]; }).fault);
  CHECK(std::isnan(read));
}

TEST_CASE("an index beyond the block's shared memory, or before it, is out of bounds") {
  const auto touch = [](int index) {
    return run_block(32, 128,
                     [=] {
                       if (threadIdx.x == 5) words()[index] = 1;
                     })
        .fault;
  };
  CHECK(!touch(31));
  CHECK(touch(32) == FaultClass::bounds);
  CHECK(touch(-1) == FaultClass::bounds);
}

TEST_CASE("a load or store of several words at once needs its alignment, in shared memory or not") {
  alignas(16) static float source[32 * 5] = {};
  const auto move = [](unsigned stride_to, unsigned stride_from) {
    return run_block(32, 32 * 5 * sizeof(float), [=] {
      const volatile auto* from =
          reinterpret_cast<const volatile double*>(source + threadIdx.x * stride_from);
      *reinterpret_cast<volatile double*>(words() + threadIdx.x * stride_to) = *from;
    });
  };
  CHECK(!move(4, 4).fault);
  for (const auto& outcome : {move(5, 4), move(4, 5)}) {
    CHECK(outcome.fault == FaultClass::alignment);
    CHECK(test::names(outcome, "thread 1"));
    CHECK(test::names(outcome, "shared_memory_test.cpp:"));
  }
}

#endif

TEST_CASE("matrix loads refuse rows that are not aligned, not inside, or not written") {
  const test::WithDevice device({.shared_checks = true});  // every access here is reported
  const auto load = [](std::size_t bytes, std::size_t shift, bool write) {
    return run_block(32, bytes, [=] {
      unsigned char* shared = cuda_host::dynamic_shared_memory();
      if (write) {
        for (int n = 0; n < 16; n += 4) {
          unsigned char* word = shared + threadIdx.x * 16 + n;
          std::memset(word, 0, 4);
          cuda_host::note_access(word, 4, cuda_host::Access::write, nullptr);
        }
      }
      __syncthreads();
      std::uint32_t taken[4];
      cuda::load_matrices(taken, shared + threadIdx.x * 16 + shift);
    });
  };
  CHECK(!load(512, 0, true).fault);
  CHECK(load(512, 0, false).fault == FaultClass::uninitialised);
  CHECK(load(512, 16, true).fault == FaultClass::bounds);
  CHECK(load(576, 8, true).fault == FaultClass::alignment);
}

TEST_CASE("matrix loads of rows in the same banks are counted as conflicts") {
  const auto conflicts = [](std::size_t stride) {
    const test::WithDevice device({.shared_checks = false});
    cuda_host::device_counts() = {};
    CHECK(!run_block(32, 32 * stride, [=] {
             std::uint32_t taken[4];
             cuda::load_matrices(taken, cuda_host::dynamic_shared_memory() + threadIdx.x * stride);
           }).fault);
    return cuda_host::device_counts().bank_conflicts;
  };
  CHECK(conflicts(16) == 0);
  CHECK(conflicts(144) == 0);
  CHECK(conflicts(128) == 4 * 7);
}
