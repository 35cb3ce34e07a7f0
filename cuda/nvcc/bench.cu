// ringproof-cuda-bench: times every step of the ladder on the GPU at hand, bf16 inputs. One line a
// measurement: step, width, queries, causal, milliseconds (the least of several), teraflops. Timed
// is the one launch that folds all keys into the states; the division at the end is not. Work that
// a mask makes needless does not count as done. tests/device.sh runs it.
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "cuda/handles.hpp"
#include "cuda/kernels/launch.cuh"
#include "cuda/sixteen_bits.hpp"

namespace {

using namespace ringproof::cuda;

constexpr int kHeads = 16, kRepeats = 5;

/// A block of normal numbers on the device, as bf16.
DeviceArray<Bf16> random_numbers(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Bf16> numbers(size);
  for (Bf16& number : numbers) number.bits = bf16_of_float(normal(random));
  DeviceArray<Bf16> device(size);
  check(cudaMemcpy(device.get(), numbers.data(), device.bytes(), cudaMemcpyHostToDevice));
  return device;
}

/// The least time of one launch, in milliseconds.
float milliseconds(const Launches& kernel, const BlockArguments<Bf16>& block) {
  const StreamOwner stream = make_stream();
  cudaEvent_t begin{}, end{};
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  const EventOwner begin_owner(begin), end_owner(end);
  float least = std::numeric_limits<float>::infinity();
  for (int n = 0; n <= kRepeats; ++n) {
    launch_empty_states(block.m, block.l, block.o, block.heads * block.queries, block.width,
                        stream.get());
    check(cudaEventRecord(begin, stream.get()));
    kernel(block, stream.get());
    check(cudaEventRecord(end, stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    check(cudaGetLastError());
    float time = 0;
    check(cudaEventElapsedTime(&time, begin, end));
    if (n > 0) least = time < least ? time : least;  // the first launch loads the code
  }
  return least;
}

void measure(const Kernel& kernel, int width, int queries, bool causal) {
  const std::size_t rows = static_cast<std::size_t>(kHeads) * queries, size = rows * width;
  const DeviceArray<Bf16> q = random_numbers(size, 1), k = random_numbers(size, 2),
                          v = random_numbers(size, 3);
  const DeviceArray<float> m(rows), l(rows), o(size);
  BlockArguments<Bf16> block;
  block.q = q.get(), block.k = k.get(), block.v = v.get();
  block.m = m.get(), block.l = l.get(), block.o = o.get();
  block.heads = block.kv_heads = kHeads;
  block.queries = block.keys = queries, block.width = width;
  block.query_rows.sharding.rows = block.key_rows.sharding.rows = queries;
  block.rules.scale = 0.125F, block.rules.causal = causal;
  const float time = milliseconds(launches(kernel), block);
  const double pairs = static_cast<double>(rows) * queries / (causal ? 2 : 1);
  std::printf("%s %d %d %s %.3f %.2f\n", std::string(kernel.number).c_str(), width, queries,
              causal ? "causal" : "full", time, pairs * width * 4 / time * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main() try {
  std::printf("step width queries causal milliseconds teraflops\n");
  for (const Kernel& kernel : ladder()) {
    if (kernel.bf16.empty()) continue;
    const int queries = kernel.number == "01" ? 1024 : 4096;  // the first step is slow
    for (const int width : {64, 128}) {
      for (const bool causal : {false, true}) measure(kernel, width, queries, causal);
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ringproof-cuda-bench: %s\n", error.what());
  return 1;
}
