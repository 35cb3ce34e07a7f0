// Barriers and collectives that not all threads reach together: each fault is found and named, and
// what is right passes, in every order of threads.
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using cuda_host::FaultClass;
using test::run_block;

namespace {

constexpr unsigned kAll = 0xffffffffU;

}  // namespace

TEST_CASE("a barrier that all threads meet passes in every order of threads") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const test::WithDevice device({.seed = seed});
    int order_seen = 0;
    const test::Outcome outcome = run_block(96, 0, [&] {
      for (int round = 0; round < 3; ++round) __syncthreads();
      if (threadIdx.x == 95) order_seen = 1;
    });
    CHECK(!outcome.fault);
    CHECK(order_seen == 1);
  }
}

TEST_CASE("a thread that ends before a barrier is divergence, with thread and line") {
  const int line = __LINE__ + 3;
  const test::Outcome outcome = run_block(64, 0, [] {
    if (threadIdx.x == 37) return;
    __syncthreads();
  });
  CHECK(outcome.fault == FaultClass::divergence);
  CHECK(test::names(outcome, "divergence_test.cpp:" + std::to_string(line)));
  CHECK(test::names(outcome, "thread 37"));
}

TEST_CASE("a barrier in one branch only is divergence") {
  const test::Outcome outcome = run_block(64, 0, [] {
    if (threadIdx.x < 32) __syncthreads();
  });
  CHECK(outcome.fault == FaultClass::divergence);
}

TEST_CASE("two barriers in two branches are divergence, with both lines") {
  const int line = __LINE__ + 3;
  const test::Outcome outcome = run_block(64, 0, [] {
    if (threadIdx.x < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  });
  CHECK(outcome.fault == FaultClass::divergence);
  CHECK(test::names(outcome, std::string(":").append(std::to_string(line))));
  CHECK(test::names(outcome, std::string(":").append(std::to_string(line + 2))));
}

TEST_CASE("a loop that some threads leave early is divergence") {
  const test::Outcome outcome = run_block(32, 0, [] {
    for (unsigned n = 0; n < 1 + threadIdx.x; ++n) __syncthreads();
  });
  CHECK(outcome.fault == FaultClass::divergence);
}

TEST_CASE("a shuffle that some lanes do not reach is divergence; different warps may differ") {
  CHECK(run_block(64, 0, [] {
          if (threadIdx.x % 32 < 7) __shfl_xor_sync(kAll, 1.0F, 1);
        }).fault == FaultClass::divergence);
  CHECK(!run_block(64, 0, [] {
           if (threadIdx.x < 32) __shfl_xor_sync(kAll, 1.0F, 1);
         }).fault);
}

TEST_CASE("lanes of a warp at two collectives at once are divergence") {
  const test::Outcome outcome = run_block(32, 0, [] {
    if (threadIdx.x < 16) {
      __shfl_sync(kAll, 1, 0);
    } else {
      __ballot_sync(kAll, 1);
    }
  });
  CHECK(outcome.fault == FaultClass::divergence);
  CHECK(test::names(outcome, "a vote"));
  CHECK(test::names(outcome, "a shuffle"));
}

TEST_CASE("threads that wait for each other at a barrier and a shuffle are divergence") {
  const test::Outcome outcome = run_block(64, 0, [] {
    if (threadIdx.x == 0) {
      __shfl_sync(kAll, 1, 0);
    } else {
      __syncthreads();
    }
  });
  CHECK(outcome.fault == FaultClass::divergence);
  CHECK(test::names(outcome, "nobody can go on"));
  CHECK(test::names(outcome, "waits at"));
}

TEST_CASE("masks of few lanes are refused, not guessed at") {
  CHECK(run_block(32, 0, [] { __syncwarp(1U); }).fault == FaultClass::usage);
}

TEST_CASE("launches with impossible shapes are refused") {
  CHECK(run_block(0, 0, [] {}).fault == FaultClass::usage);
  CHECK(run_block(33, 0, [] {}).fault == FaultClass::usage);
  CHECK(run_block(2048, 0, [] {}).fault == FaultClass::usage);
  CHECK(test::outcome_of([] {
          cuda_host::run_grid("kernel", dim3(0), dim3(32), 0, [] {});
        }).fault == FaultClass::usage);
}
