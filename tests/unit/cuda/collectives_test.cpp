// What collectives, atomics and matrix instructions compute, against their definitions.
#include <cmath>
#include <random>

#include "cuda/device/instructions.cuh"
#include "oracle/case/dtype.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using test::run_block;

namespace {

constexpr unsigned kAll = 0xffffffffU;

/// The exact value of a 16-bit code, by the judge's own decoder.
double value_of(oracle::DType type, std::uint16_t code) {
  std::byte bytes[2];
  std::memcpy(bytes, &code, 2);
  return oracle::decode(type, bytes);
}

}  // namespace

TEST_CASE("shuffles give the value of the lane that their definition names") {
  std::vector<int> exchanged(64), down(64), broadcast(64), grouped(64);
  CHECK(!run_block(64, 0, [&] {
           const int me = static_cast<int>(threadIdx.x);
           exchanged[me] = __shfl_xor_sync(kAll, me, 5);
           down[me] = __shfl_down_sync(kAll, me, 3);
           broadcast[me] = __shfl_sync(kAll, me, 7);
           grouped[me] = __shfl_sync(kAll, me, 2, 8);
         }).fault);
  for (int n = 0; n < 64; ++n) {
    const int warp = n / 32 * 32, lane = n % 32;
    CHECK(exchanged[n] == warp + (lane ^ 5));
    CHECK(down[n] == (lane + 3 < 32 ? n + 3 : n));
    CHECK(broadcast[n] == warp + 7);
    CHECK(grouped[n] == warp + lane / 8 * 8 + 2);
  }
}

TEST_CASE("votes and reductions are over the warp, barriers with a vote over the block") {
  std::vector<unsigned> votes(64);
  std::vector<int> sums(64), largest(64), any(64), some(64);
  CHECK(!run_block(64, 0, [&] {
           const int me = static_cast<int>(threadIdx.x);
           votes[me] = __ballot_sync(kAll, me % 3 == 0);
           sums[me] = __reduce_add_sync(kAll, me);
           largest[me] = __reduce_max_sync(kAll, -me);
           any[me] = __any_sync(kAll, me == 40) + 2 * __all_sync(kAll, me < 32);
           some[me] = __syncthreads_or(me == 63);
         }).fault);
  for (int n = 0; n < 64; ++n) {
    const int first = n / 32 * 32;
    unsigned expected = 0;
    for (int lane = 0; lane < 32; ++lane) {
      expected |= ((first + lane) % 3 == 0 ? 1U : 0U) << lane;
    }
    CHECK(votes[n] == expected);
    CHECK(sums[n] == 32 * first + 31 * 16);
    CHECK(largest[n] == -first);
    CHECK(any[n] == (first == 0 ? 2 : 1));
    CHECK(some[n] == 1);
  }
}

TEST_CASE("atomic additions of all threads add up in every order") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const test::WithDevice device({.seed = seed});
    int sum = 0;
    CHECK(!run_block(128, 0, [&] { atomicAdd(&sum, 2); }).fault);
    CHECK(sum == 256);
  }
}

TEST_CASE("16-bit numbers widen to their value and come back, for every code") {
  for (unsigned n = 0; n < 0x10000; ++n) {
    const auto code = static_cast<std::uint16_t>(n);
    const double bf16 = value_of(oracle::DType::bf16, code);
    const double fp16 = value_of(oracle::DType::f16, code);
    if (std::isnan(bf16) ? !std::isnan(cuda::float_of_bf16(code))
                         : cuda::float_of_bf16(code) != bf16 ||
                               cuda::bf16_of_float(static_cast<float>(bf16)) != code) {
      FAIL_CHECK("bf16 code " << n);
    }
    if (std::isnan(fp16) ? !std::isnan(cuda::float_of_fp16(code))
                         : cuda::float_of_fp16(code) != fp16 ||
                               cuda::fp16_of_float(static_cast<float>(fp16)) != code) {
      FAIL_CHECK("fp16 code " << n);
    }
  }
}

TEST_CASE("fp32 rounds to 16 bits as the judge rounds") {
  std::mt19937 random(1);
  for (int n = 0; n < 200000; ++n) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(number)) continue;
    const double bf16 = oracle::round_nearest(oracle::DType::bf16, number);
    const double fp16 = oracle::round_nearest(oracle::DType::f16, number);
    if (cuda::float_of_bf16(cuda::bf16_of_float(number)) != bf16) FAIL_CHECK("bf16 " << number);
    if (cuda::float_of_fp16(cuda::fp16_of_float(number)) != fp16) FAIL_CHECK("fp16 " << number);
  }
}

TEST_CASE("a matrix load gives each lane its two neighbours of a row, or of a column") {
  std::uint16_t plain[32][8], transposed[32][8];
  CHECK(!run_block(32, 512, [&] {
           unsigned char* shared = cuda_host::dynamic_shared_memory();
           auto* row = reinterpret_cast<std::uint16_t*>(shared + threadIdx.x * 16);
           for (int c = 0; c < 8; ++c) {
             row[c] =
                 static_cast<std::uint16_t>(threadIdx.x * 8 + c);  // 64 matrix + 8 row + column
             cuda_host::note_access(row + c, 2, cuda_host::Access::write, nullptr);
           }
           __syncthreads();
           std::uint32_t taken[4];
           cuda::load_matrices(taken, row);
           std::memcpy(plain[threadIdx.x], taken, sizeof taken);
           cuda::load_matrices_transposed(taken, row);
           std::memcpy(transposed[threadIdx.x], taken, sizeof taken);
         }).fault);
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      for (int n = 0; n < 2; ++n) {
        const int row = lane / 4, column = lane % 4 * 2 + n;
        CHECK(plain[lane][2 * matrix + n] == matrix * 64 + row * 8 + column);
        CHECK(transposed[lane][2 * matrix + n] == matrix * 64 + column * 8 + row);
      }
    }
  }
}

TEST_CASE("a matrix product multiplies: entries lie where the fragments say") {
  // Small integers: every sum is exact, so any model and any order gives the same.
  for (const auto model : {cuda_host::MatrixSum::sequential, cuda_host::MatrixSum::truncated}) {
    const test::WithDevice device({.matrix_sum = model});
    const auto a = [](int i, int k) { return static_cast<float>(i - 2 * k + 3); };
    const auto b = [](int k, int j) { return static_cast<float>(3 * k - j); };
    const auto c = [](int i, int j) { return static_cast<float>(100 * i + j); };
    float d[16][8];
    CHECK(!run_block(32, 0, [&] {
             const int group = static_cast<int>(threadIdx.x) / 4;
             const int pair = static_cast<int>(threadIdx.x) % 4 * 2;
             const auto two = [](float low, float high) {
               return cuda::pack<cuda::Bf16>(low, high);
             };
             const auto of_a = [&](int i, int k) { return two(a(i, k), a(i, k + 1)); };
             const auto of_b = [&](int k) { return two(b(k, group), b(k + 1, group)); };
             const std::uint32_t left[4] = {of_a(group, pair), of_a(group + 8, pair),
                                            of_a(group, pair + 8), of_a(group + 8, pair + 8)};
             float sum[4] = {c(group, pair), c(group, pair + 1), c(group + 8, pair),
                             c(group + 8, pair + 1)};
             cuda::multiply_add<cuda::Bf16>(sum, left, of_b(pair), of_b(pair + 8));
             for (int n = 0; n < 4; ++n) d[group + n / 2 * 8][pair + n % 2] = sum[n];
           }).fault);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        float expected = c(i, j);
        for (int k = 0; k < 16; ++k) expected += a(i, k) * b(k, j);
        CHECK(d[i][j] == expected);
      }
    }
  }
}

TEST_CASE("the truncating sum cuts two bits below fp32, the sequential one rounds") {
  float a[16] = {}, b[16] = {};
  const auto sum = [&](cuda_host::MatrixSum model, float c) {
    return cuda_host::matrix_sum(model, c, a, b);
  };
  a[0] = 1, b[0] = 1;
  a[1] = 0x1p-13F, b[1] = 0x1.8p-11F;  // 0.75 units of the sum: rounded up, or cut away
  CHECK(sum(cuda_host::MatrixSum::sequential, 0) == 1 + 0x1p-23F);
  CHECK(sum(cuda_host::MatrixSum::truncated, 0) == 1);
  a[2] = a[3] = a[1], b[2] = b[3] = b[1];  // 2.25 units in all
  CHECK(sum(cuda_host::MatrixSum::sequential, 0) == 1 + 3 * 0x1p-23F);
  CHECK(sum(cuda_host::MatrixSum::truncated, 0) == 1 + 2 * 0x1p-23F);
  for (int k = 4; k < 16; ++k) a[k] = 0x1p-13F, b[k] = 0x1p-13F;  // each below the cut
  CHECK(sum(cuda_host::MatrixSum::truncated, 0) == 1 + 2 * 0x1p-23F);
  a[0] = INFINITY;
  CHECK(std::isinf(sum(cuda_host::MatrixSum::truncated, 0)));
}
