// Step 4, warp rows: a row belongs to one warp alone. Lane n has key n of a tile of 32, so maximum
// and sum are shuffles, and a weight reaches the others by a shuffle instead of through shared
// memory: nothing but the tile itself needs a barrier.
#include "cuda/kernels/ladder.cuh"

namespace ringproof::cuda {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kEach = 4, kRows = kWarps * kEach;  // rows of a warp, of a block
constexpr int kKeys = 32;
constexpr unsigned kAll = 0xffffffffU;

template <int W, class Element>
struct Memory {
  Element q[kRows][W], k[kKeys][W + 2], v[kKeys][W];  // lanes read a column of k, a row of v
  Row row[kKeys];
};

template <int W, int Stride, class Element>
__device__ void load(Element (&tile)[kKeys][Stride],
                     const Element* rows,  // [count, W]
                     int first, int count) {
  for (int n = static_cast<int>(threadIdx.x); n < kKeys * W; n += kThreads) {
    const bool inside = first + n / W < count;
    tile[n / W][n % W] =
        inside ? rows[static_cast<std::size_t>(first + n / W) * W + n % W] : Element{};
  }
}

__device__ float warp_max(float x) {
  for (int bits = 16; bits > 0; bits /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, bits));
  return x;
}

__device__ float warp_sum(float x) {
  for (int bits = 16; bits > 0; bits /= 2) x += __shfl_xor_sync(kAll, x, bits);
  return x;
}

/// The state of one row: m and l in every lane, of o every 32nd column.
template <int W>
struct RowPart {
  float m, l, o[W / 32];
};

/// One row against one tile.
template <int W, class Element>
__device__ void absorb(RowPart<W>& part, const Memory<W, Element>& memory,
                       const BlockArguments<Element>& block, const Row& query, int local_row,
                       int lane) {
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  float s = 0;
  RINGPROOF_ROLLED
  for (int d = 0; d < W; ++d) {
    s += to_float(memory.q[local_row][d]) * to_float(memory.k[lane][d]);
  }
  const bool seen = visible(block.rules, batch, head, query, memory.row[lane]);
  s = seen ? score<false>(block.rules, batch, head, query, memory.row[lane], s) : minus_infinity();

  const float m = fmaxf(part.m, warp_max(s));
  const Rescale past = rescale(part.m, m);
  const float p = seen ? weight(s, past.shift) : 0;
  part.m = m;
  part.l = part.l * past.alpha + warp_sum(p);
  for (int c = 0; c < W / 32; ++c) part.o[c] *= past.alpha;
  const unsigned visible_keys = __ballot_sync(kAll, seen ? 1 : 0);
  RINGPROOF_ROLLED
  for (int j = 0; j < kKeys; ++j) {
    const float of_j = __shfl_sync(kAll, p, j);
    if ((visible_keys >> j & 1U) == 0) continue;  // its value may be anything
    RINGPROOF_UNROLL
    for (int c = 0; c < W / 32; ++c) part.o[c] += of_j * to_float(memory.v[j][lane + 32 * c]);
  }
}

template <int W, class Element>
__global__ void __launch_bounds__(kThreads) warp_rows(BlockArguments<Element> block) {
  RINGPROOF_DYNAMIC_SHARED(bytes);
  Memory<W, Element>& memory = *reinterpret_cast<Memory<W, Element>*>(bytes);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * kEach;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int first_query = static_cast<int>(blockIdx.x) * kRows;
  const int last_query = min(first_query + kRows, block.queries) - 1;
  const std::size_t keys_at = block.key_row(batch, head, 0) * W;
  load<W>(memory.q, block.q + block.query_row(batch, head, 0) * W, first_query, block.queries);

  RowPart<W> part[kEach];
  Row query[kEach];
  RINGPROOF_UNROLL
  for (int r = 0; r < kEach; ++r) {
    const int i = first_query + warp_row + r;
    const bool here = i < block.queries;
    query[r] = here ? block.query_rows.at(batch, i) : Row{};
    const std::size_t at = block.query_row(batch, head, here ? i : 0);
    part[r].m = here ? block.m[at] : minus_infinity(), part[r].l = here ? block.l[at] : 0;
    for (int c = 0; c < W / 32; ++c) part[r].o[c] = here ? block.o[at * W + lane + 32 * c] : 0;
  }
  int tiles_seen = 0;
  for (int first = 0; first < block.keys; first += kKeys) {
    const int last = min(first + kKeys, block.keys) - 1;
    if (tile_sight(block.rules, block.query_rows, block.key_rows, batch, first_query, last_query,
                   first, last) == Sight::none) {
      continue;
    }
    ++tiles_seen;
    __syncthreads();  // the tile before has been read
    load<W>(memory.k, block.k + keys_at, first, block.keys);
    load<W>(memory.v, block.v + keys_at, first, block.keys);
    for (int n = static_cast<int>(threadIdx.x); n < kKeys; n += kThreads) {
      memory.row[n] = first + n < block.keys ? block.key_rows.at(batch, first + n) : Row{};
    }
    __syncthreads();
    RINGPROOF_UNROLL
    for (int r = 0; r < kEach; ++r) absorb(part[r], memory, block, query[r], warp_row + r, lane);
  }
  if (tiles_seen == 0) return;  // the states stay as they are
  RINGPROOF_UNROLL
  for (int r = 0; r < kEach; ++r) {
    const int i = first_query + warp_row + r;
    if (i >= block.queries) continue;
    const std::size_t at = block.query_row(batch, head, i);
    if (lane == 0) block.m[at] = part[r].m, block.l[at] = part[r].l;
    for (int c = 0; c < W / 32; ++c) block.o[at * W + lane + 32 * c] = part[r].o[c];
  }
}

}  // namespace

template <class Element>
void launch_warp_rows(const BlockArguments<Element>& block, cudaStream_t stream) {
  with_width(block.width, [&]<int W>() {
    constexpr std::size_t bytes = sizeof(Memory<W, Element>);
    allow_shared(warp_rows<W, Element>, bytes);
    launch("04_warp_rows", warp_rows<W, Element>, query_grid(block, kRows), dim3(kThreads), bytes,
           stream, block);
  });
}
template void launch_warp_rows(const BlockArguments<float>&, cudaStream_t);
template void launch_warp_rows(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_warp_rows(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
