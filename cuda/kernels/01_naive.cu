// Step 1, naive: one thread a query row, everything read from global memory, in the order of the
// scalar tier. Scores are formed twice, once for the maximum and once for the weights, because
// there is nowhere to keep them. On the host it agrees with the scalar tier bit for bit.
#include "cuda/kernels/ladder.cuh"

namespace ringproof::cuda {
namespace {

constexpr int kThreads = 64;

template <class Element>
__device__ float dot(const Element* q,  // [width]
                     const Element* k,  // [width]
                     int width) {
  float sum = 0;
  for (int d = 0; d < width; ++d) sum = sum + to_float(q[d]) * to_float(k[d]);
  return sum;
}

/// The score of a pair; minus infinity if the query does not see the key.
template <class Element>
__device__ float pair_score(const BlockArguments<Element>& block, int batch, int head, int i,
                            const Row& query, int j) {
  const Row key = block.key_rows.at(batch, j);
  if (!visible(block.rules, batch, head, query, key)) return minus_infinity();
  const std::size_t width = block.width;
  const float product = dot(block.q + block.query_row(batch, head, i) * width,
                            block.k + block.key_row(batch, head, j) * width, block.width);
  return score<true>(block.rules, batch, head, query, key, product);
}

template <class Element>
__global__ void naive(BlockArguments<Element> block) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  if (i >= block.queries) return;
  const Row query = block.query_rows.at(batch, i);
  const std::size_t row = block.query_row(batch, head, i);

  float m = block.m[row];
  for (int j = 0; j < block.keys; ++j) {
    const float s = pair_score(block, batch, head, i, query, j);
    m = m < s ? s : m;
  }
  if (is_minus_infinity(m)) return;  // nothing seen yet

  float l = 0, o[kMostWidth];
  for (int c = 0; c < block.width; ++c) o[c] = 0;
  for (int j = 0; j < block.keys; ++j) {
    const float s = pair_score(block, batch, head, i, query, j);
    if (is_minus_infinity(s)) continue;
    const float weight = exact_exp(s - m);
    const Element* value = block.v + block.key_row(batch, head, j) * block.width;
    l = l + weight;
    for (int c = 0; c < block.width; ++c) o[c] = o[c] + weight * to_float(value[c]);
  }

  const float alpha = exact_exp(block.m[row] - m);
  block.l[row] = alpha * block.l[row] + l;
  for (int c = 0; c < block.width; ++c) {
    float& sum = block.o[row * block.width + c];
    sum = alpha * sum + o[c];
  }
  block.m[row] = m;
}

}  // namespace

template <class Element>
void launch_naive(const BlockArguments<Element>& block, cudaStream_t stream) {
  launch("01_naive", naive<Element>, query_grid(block, kThreads), dim3(kThreads), 0, stream, block);
}
template void launch_naive(const BlockArguments<float>&, cudaStream_t);
template void launch_naive(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_naive(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
