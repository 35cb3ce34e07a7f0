// Step 6, asynchronous copies: while the matrix units work on one tile, cp.async brings the next
// one into a second buffer, behind the threads' backs. Rows lie without gaps; a row's sixteen-byte
// chunks are exchanged by XOR with its number instead, so that matrix loads still meet no conflict.
#include "cuda/kernels/matrix_rows.cuh"

namespace ringproof::cuda {
namespace {

/// Rows [64, W] in shared memory. Eight neighbouring rows have one chunk in eight different banks.
template <int W, class Element>
struct SwizzledTile {
  Element numbers[kMatrixKeys * W];

  static __device__ __forceinline__ int turn(int row) {
    return W == 32 ? row / 2 % 4 : row % 8;  // a row of 32 numbers is half a line of all banks
  }
  __device__ __forceinline__ Element* at(int row, int column) {
    return numbers + row * W + (column / 8 ^ turn(row)) * 8 + column % 8;
  }
  __device__ __forceinline__ const Element* at(int row, int column) const {
    return numbers + row * W + (column / 8 ^ turn(row)) * 8 + column % 8;
  }
};

template <int W, class Element>
struct Memory {
  SwizzledTile<W, Element> q, k[2], v[2];
  TileFacts facts;
};

/// Rows [first, first + 64) of a tensor are under way; zeros behind the last.
template <int W, class Element>
__device__ __forceinline__ void copy(SwizzledTile<W, Element>& tile,
                                     const Element* rows,  // [count, W]
                                     int first, int count) {
  constexpr int kChunks = W / 8;
  RINGPROOF_ROLLED  // unrolled, the addresses would not leave room for the sums
      for (int n = static_cast<int>(threadIdx.x); n < kMatrixKeys * kChunks; n += kMatrixThreads) {
    const int row = n / kChunks, column = n % kChunks * 8;
    const bool inside = first + row < count;
    copy_async(tile.at(row, column),
               rows + static_cast<std::size_t>(inside ? first + row : 0) * W + column, inside);
  }
}

/// The next tile from `tile` on of which this block of queries sees something, and how much.
template <class Element>
__device__ __forceinline__ Sight find_tile(TileFacts& facts, const BlockArguments<Element>& block,
                                           const Place& place, int tiles, int& tile) {
  for (; tile < tiles; ++tile) {
    const Sight sight = sight_of_tile(facts, block, place, tile);
    if (sight != Sight::none) return sight;
  }
  return Sight::none;
}

template <int W, class Element>
__global__ void __launch_bounds__(kMatrixThreads) async_copy(BlockArguments<Element> block) {
  RINGPROOF_DYNAMIC_SHARED(bytes);
  Memory<W, Element>& memory = *reinterpret_cast<Memory<W, Element>*>(bytes);
  const Place place = place_of_thread();
  const Element* k = block.k + block.key_row(place.batch, place.head, 0) * W;
  const Element* v = block.v + block.key_row(place.batch, place.head, 0) * W;
  const int tiles = (block.keys + kMatrixKeys - 1) / kMatrixKeys;

  int tile = 0;
  Sight sight = find_tile(memory.facts, block, place, tiles, tile);
  if (sight == Sight::none) return;  // the states stay as they are
  copy(memory.q, block.q + block.query_row(place.batch, place.head, 0) * W, place.first_query,
       block.queries);
  copy(memory.k[0], k, tile * kMatrixKeys, block.keys);
  copy(memory.v[0], v, tile * kMatrixKeys, block.keys);
  commit_copies();
  LaneRows<W> rows;
  load_states(rows, block, place);

  for (int stage = 0; sight != Sight::none; stage = 1 - stage) {
    const int first_key = tile * kMatrixKeys;
    const Sight now = sight;
    ++tile;
    sight = find_tile(memory.facts, block, place, tiles, tile);
    wait_copies<0>();
    __syncthreads();  // all threads' copies are there, and the other buffer has been read
    if (sight != Sight::none) {
      copy(memory.k[1 - stage], k, tile * kMatrixKeys, block.keys);
      copy(memory.v[1 - stage], v, tile * kMatrixKeys, block.keys);
      commit_copies();
    }
    if (now == Sight::some) {
      load_rows(memory.facts, block, place.batch, first_key);
      clean_values<W, Element>(memory.facts, memory.v[stage]);
    }
    float s[kMatrixKeys / 8][4];
    raw_scores<W, Element>(s, memory.q, memory.k[stage], place);
    if (now == Sight::all) {
      scale_scores(s, block.rules.scale);
    } else {
      rule_scores(s, rows, memory.facts, block, place);
    }
    absorb_scores(s, rows);
    add_values<W, Element>(s, rows.o, memory.v[stage], place);
  }
  store_states(rows, block, place);
}

}  // namespace

template <class Element>
void launch_async_copy(const BlockArguments<Element>& block, cudaStream_t stream) {
  with_width(block.width, [&]<int W>() {
    constexpr std::size_t bytes = sizeof(Memory<W, Element>);
    allow_shared(async_copy<W, Element>, bytes);
    launch("06_async_copy", async_copy<W, Element>, query_grid(block, kMatrixRows),
           dim3(kMatrixThreads), bytes, stream, block);
  });
}
template void launch_async_copy(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_async_copy(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
