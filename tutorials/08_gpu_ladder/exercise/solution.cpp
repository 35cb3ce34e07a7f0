// Exercise 08: put a tile into shared memory. The kernel below reads every key and value from
// device memory, once for each query. Write the one that brings 32 keys at a time into shared
// memory, so that a block of threads reads each number once. Everything between the marks is yours;
// the rest is the check: the answer, the number of reads, and several orders of threads with the
// detectors on. Weights are powers of two and scores are whole, so that no operation rounds.
#include <string>
#include <vector>

#include "cuda/device/cuda.cuh"
#include "cuda/host/fault.hpp"
#include "cuda/host/grid.hpp"
#include "tutorials/support/check.hpp"
#include "tutorials/support/exact.hpp"

using ringproof::tutorials::Check;
using ringproof::tutorials::weight;
namespace cuda_host = ringproof::cuda_host;

constexpr int kN = 128, kThreads = 32, kTile = 32;  // queries and keys; D is 1 here

struct Head {
  const double *q, *k, *v;  // [N], in device memory
  double *l, *o;            // [N] the sums of each query: weights, and weights times values
};

long device_reads = 0;
double from_device(double x) { return ++device_reads, x; }

/// One thread a query, everything from device memory. The scores are small: no maximum is needed.
__global__ void naive(Head head) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const double q = from_device(head.q[i]);
  double l = 0, o = 0;
  for (int j = 0; j < kN; ++j) {
    const double w = weight(q * from_device(head.k[j]));
    l += w;
    o += w * from_device(head.v[j]);
  }
  head.l[i] = l, head.o[i] = o;
}

struct Tile {
  double k[kTile], v[kTile];
};

__global__ void shared_tiles(Head head) {
  RINGPROOF_DYNAMIC_SHARED(memory);
  Tile& tile = *reinterpret_cast<Tile*>(memory);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const double q = from_device(head.q[i]);
  double l = 0, o = 0;
  for (int first = 0; first < kN; first += kTile) {
    // [answer]
    //? // Your turn: each thread brings one key and one value of the tile; then all of them use
    //? // all. Where must the threads wait for each other?
    //? (void)tile;
    __syncthreads();  // everybody has done with the tile before
    tile.k[threadIdx.x] = from_device(head.k[first + static_cast<int>(threadIdx.x)]);
    tile.v[threadIdx.x] = from_device(head.v[first + static_cast<int>(threadIdx.x)]);
    __syncthreads();  // this one is complete
    for (int j = 0; j < kTile; ++j) {
      const double w = weight(q * tile.k[j]);
      l += w;
      o += w * tile.v[j];
    }
    // [/answer]
  }
  head.l[i] = l, head.o[i] = o;
}

struct Result {
  std::vector<double> l = std::vector<double>(kN), o = std::vector<double>(kN);
  long reads = 0;
  std::string fault = "none";
};

Result run(void (*kernel)(Head), std::uint64_t seed) {
  std::vector<double> q, k, v;
  for (int n = 0; n < kN; ++n) q.push_back(n % 4), k.push_back(n * 7 % 5), v.push_back(n % 11);
  Result result;
  const Head head{q.data(), k.data(), v.data(), result.l.data(), result.o.data()};
  device_reads = 0;
  cuda_host::device_options().seed = seed;
  try {
    cuda_host::run_grid("kernel", dim3(kN / kThreads), dim3(kThreads), sizeof(Tile),
                        [=] { kernel(head); });
  } catch (const cuda_host::Fault& fault) {
    result.fault = fault.what();
  }
  result.reads = device_reads;
  return result;
}

int main() {
  Check check("08");
  const Result expected = run(naive, 0);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const Result found = run(shared_tiles, seed);
    const std::string order = fmt::format("order {} of the threads: ", seed);
    check.equal(order + "fault", found.fault, std::string("none"));
    check.holds(order + "l of every query", found.l == expected.l);
    check.holds(order + "o of every query", found.o == expected.o);
    check.equal(order + "reads of device memory", found.reads, long(kN + kN / kThreads * kN * 2));
  }
  return check.finish();
}
