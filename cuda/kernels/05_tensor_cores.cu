// Step 5, tensor cores: a warp has sixteen query rows, and both products run on the matrix units in
// bf16 or fp16 with fp32 sums. Probabilities stay in the registers in which they were born. Rows in
// shared memory are eight numbers longer than they need to be, so that the eight rows of a matrix
// lie in different banks.
#include "cuda/kernels/padded_tile.cuh"

namespace ringproof::cuda {
namespace {

template <int W, class Element>
struct Memory {
  PaddedTile<W, Element> q, k, v;
  TileFacts facts;
};

// Two blocks a processor: left to itself, ptxas makes room for four and spills at width 32.
template <int W, class Element>
__global__ void __launch_bounds__(kMatrixThreads, 2) tensor_cores(BlockArguments<Element> block) {
  RINGPROOF_DYNAMIC_SHARED(bytes);
  Memory<W, Element>& memory = *reinterpret_cast<Memory<W, Element>*>(bytes);
  const Place place = place_of_thread();
  const Element* k = block.k + block.key_row(place.batch, place.head, 0) * W;
  const Element* v = block.v + block.key_row(place.batch, place.head, 0) * W;
  load(memory.q, block.q + block.query_row(place.batch, place.head, 0) * W, place.first_query,
       block.queries);
  LaneRows<W> rows;
  load_states(rows, block, place);

  const int tiles = (block.keys + kMatrixKeys - 1) / kMatrixKeys;
  int tiles_seen = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const Sight sight = sight_of_tile(memory.facts, block, place, tile);
    if (sight == Sight::none) continue;
    const int first_key = tile * kMatrixKeys;
    ++tiles_seen;
    __syncthreads();  // the tile before has been read
    load(memory.k, k, first_key, block.keys);
    load(memory.v, v, first_key, block.keys);
    load_rows(memory.facts, block, place.batch, first_key);
    __syncthreads();
    if (sight == Sight::some) clean_values<W, Element>(memory.facts, memory.v);
    float s[kMatrixKeys / 8][4];
    raw_scores<W, Element>(s, memory.q, memory.k, place);
    if (sight == Sight::all) {
      scale_scores(s, block.rules.scale);
    } else {
      rule_scores(s, rows, memory.facts, block, place);
    }
    absorb_scores(s, rows);
    add_values<W, Element>(s, rows.o, memory.v, place);
  }
  if (tiles_seen > 0) store_states(rows, block, place);  // else the states stay as they are
}

}  // namespace

template <class Element>
void launch_tensor_cores(const BlockArguments<Element>& block, cudaStream_t stream) {
  with_width(block.width, [&]<int W>() {
    constexpr std::size_t bytes = sizeof(Memory<W, Element>);
    allow_shared(tensor_cores<W, Element>, bytes);
    launch("05_tensor_cores", tensor_cores<W, Element>, query_grid(block, kMatrixRows),
           dim3(kMatrixThreads), bytes, stream, block);
  });
}
template void launch_tensor_cores(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_tensor_cores(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
