// Step 2, shared tiles: still one thread a query row, but the block of threads brings 32 keys and
// values at a time into shared memory, so each is read from global memory once a block instead of
// once a row. The softmax goes online: maximum and sums are corrected once every eight keys.
#include "cuda/kernels/ladder.cuh"

namespace ringproof::cuda {
namespace {

constexpr int kThreads = 64, kTile = 32, kGroup = 8;

template <int W>
struct Tile {
  float k[kTile][W], v[kTile][W];
  Row row[kTile];
};

/// Keys [first, first + 32) of the block into shared memory; behind the last there is nobody.
template <int W, class Element>
__device__ void load(Tile<W>& tile, const BlockArguments<Element>& block, int batch, int head,
                     int first) {
  for (int n = static_cast<int>(threadIdx.x); n < kTile * W; n += kThreads) {
    const int j = first + n / W, d = n % W;
    const bool inside = j < block.keys;
    const std::size_t at = block.key_row(batch, head, inside ? j : 0) * W + d;
    tile.k[n / W][d] = inside ? to_float(block.k[at]) : 0;
    tile.v[n / W][d] = inside ? to_float(block.v[at]) : 0;
  }
  for (int n = static_cast<int>(threadIdx.x); n < kTile; n += kThreads) {
    tile.row[n] = first + n < block.keys ? block.key_rows.at(batch, first + n) : Row{};
  }
}

/// The online softmax of one row with kGroup keys of the tile, whose scores fit into registers.
template <int W, class Element>
__device__ __forceinline__ void absorb(float& m, float& l, float (&o)[W], const Tile<W>& tile,
                                       int group, const BlockArguments<Element>& block, int batch,
                                       int head, const Row& query,
                                       const Element* q) {  // [W]
  float s[kGroup] = {};
  RINGPROOF_ROLLED
  for (int d = 0; d < W; ++d) {
    const float of_q = to_float(q[d]);
    RINGPROOF_UNROLL
    for (int j = 0; j < kGroup; ++j) s[j] += of_q * tile.k[group + j][d];
  }
  const std::uint32_t bits = visible_bits<kGroup>(block.rules, batch, head, [&](int j) -> RowPair {
    return {query, tile.row[group + j]};
  });
  const bool plain = block.rules.plain_scores();
  float largest = m;
  RINGPROOF_UNROLL
  for (int j = 0; j < kGroup; ++j) {
    const bool seen = (bits >> j & 1U) != 0;
    s[j] = !seen   ? minus_infinity()
           : plain ? block.rules.scale * s[j]
                   : score<false>(block.rules, batch, head, query, tile.row[group + j], s[j]);
    largest = fmaxf(largest, s[j]);
  }
  const Rescale past = rescale(m, largest);
  m = largest;
  l *= past.alpha;
  for (int c = 0; c < W; ++c) o[c] *= past.alpha;
  RINGPROOF_UNROLL
  for (int j = 0; j < kGroup; ++j) {
    if (is_minus_infinity(s[j])) continue;  // its value may be anything
    const float p = weight(s[j], past.shift);
    l += p;
    for (int c = 0; c < W; ++c) o[c] += p * tile.v[group + j][c];
  }
}

template <int W, class Element>
__global__ void __launch_bounds__(kThreads) shared_tiles(BlockArguments<Element> block) {
  RINGPROOF_DYNAMIC_SHARED(memory);
  Tile<W>& tile = *reinterpret_cast<Tile<W>*>(memory);
  const int first_query = static_cast<int>(blockIdx.x) * kThreads;
  const int i = first_query + static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const bool here = i < block.queries;  // the others help to load
  const int last_query = min(first_query + kThreads, block.queries) - 1;
  const std::size_t row = block.query_row(batch, head, here ? i : 0);
  const Row query = here ? block.query_rows.at(batch, i) : Row{};

  float m = here ? block.m[row] : minus_infinity(), l = here ? block.l[row] : 0, o[W];
  for (int c = 0; c < W; ++c) o[c] = here ? block.o[row * W + c] : 0;
  for (int first = 0; first < block.keys; first += kTile) {
    const int last = min(first + kTile, block.keys) - 1;
    if (tile_sight(block.rules, block.query_rows, block.key_rows, batch, first_query, last_query,
                   first, last) == Sight::none) {
      continue;
    }
    __syncthreads();  // the tile before has been read
    load<W>(tile, block, batch, head, first);
    __syncthreads();

    RINGPROOF_ROLLED
    for (int group = 0; group < kTile; group += kGroup) {
      absorb(m, l, o, tile, group, block, batch, head, query, block.q + row * W);
    }
  }
  if (!here) return;
  block.m[row] = m, block.l[row] = l;
  for (int c = 0; c < W; ++c) block.o[row * W + c] = o[c];
}

}  // namespace

template <class Element>
void launch_shared_tiles(const BlockArguments<Element>& block, cudaStream_t stream) {
  with_width(block.width, [&]<int W>() {
    allow_shared(shared_tiles<W, Element>, sizeof(Tile<W>));
    launch("02_shared_tiles", shared_tiles<W, Element>, query_grid(block, kThreads), dim3(kThreads),
           sizeof(Tile<W>), stream, block);
  });
}
template void launch_shared_tiles(const BlockArguments<float>&, cudaStream_t);
template void launch_shared_tiles(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_shared_tiles(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
