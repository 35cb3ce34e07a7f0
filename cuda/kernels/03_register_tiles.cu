// Step 3, register tiles: 256 threads in a square of 16 x 16 share 64 queries and 64 keys, so each
// computes 4 x 4 scores from 4 + 4 numbers a step: each load from shared memory serves four. The
// sixteen threads of a row agree on maximum and sums by shuffles; weights go through shared memory.
#include "cuda/kernels/ladder.cuh"

namespace ringproof::cuda {
namespace {

constexpr int kSide = 16, kThreads = kSide * kSide;
constexpr int kRows = 64, kKeys = 64, kEach = 4;  // rows and keys of a thread

template <int W, class Element>
struct Memory {
  Element q[kRows][W + 2], k[kKeys][W + 2], v[kKeys][W + 2];  // a gap: rows begin in other banks
  float p[kRows][kKeys + 1];
  Row row[kKeys];
};

/// Rows [first, first + 64) of a tensor; zeros behind the last.
template <int W, class Element>
__device__ void load(Element (&tile)[kKeys][W + 2],
                     const Element* rows,  // [count, W]
                     int first, int count) {
  for (int n = static_cast<int>(threadIdx.x); n < kKeys * W; n += kThreads) {
    const bool inside = first + n / W < count;
    tile[n / W][n % W] =
        inside ? rows[static_cast<std::size_t>(first + n / W) * W + n % W] : Element{};
  }
}

/// The sixteen threads of one row are half a warp.
__device__ float row_max(float x) {
  for (int bits = kSide / 2; bits > 0; bits /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, bits, kSide));
  }
  return x;
}

__device__ float row_sum(float x) {
  for (int bits = kSide / 2; bits > 0; bits /= 2) {
    x += __shfl_xor_sync(0xffffffffU, x, bits, kSide);
  }
  return x;
}

/// A thread's part of the states: its rows, and every sixteenth column of o.
template <int W>
struct Part {
  float m[kEach], l[kEach], o[kEach][W / kSide];
  Row query[kEach];
  std::size_t at[kEach];
  bool here[kEach];
};

/// 4 x 4 scores of the tile: rows 4 y + r, keys x + 16 c.
template <int W, class Element>
__device__ void tile_scores(float (&s)[kEach][kEach], const Memory<W, Element>& memory,
                            const BlockArguments<Element>& block, const Part<W>& part, int x,
                            int y) {
  for (int d = 0; d < W; ++d) {
    float q[kEach], k[kEach];
    RINGPROOF_UNROLL
    for (int r = 0; r < kEach; ++r) q[r] = to_float(memory.q[y * kEach + r][d]);
    RINGPROOF_UNROLL
    for (int c = 0; c < kEach; ++c) k[c] = to_float(memory.k[x + kSide * c][d]);
    RINGPROOF_UNROLL
    for (int r = 0; r < kEach; ++r) {
      RINGPROOF_UNROLL
      for (int c = 0; c < kEach; ++c) s[r][c] += q[r] * k[c];
    }
  }
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const Row* queries = part.query;
  const std::uint32_t bits =
      visible_bits<kEach * kEach>(block.rules, batch, head, [&](int n) -> RowPair {
        return {queries[n / kEach], memory.row[x + kSide * (n % kEach)]};
      });
  const bool plain = block.rules.plain_scores();
  RINGPROOF_UNROLL
  for (int r = 0; r < kEach; ++r) {
    RINGPROOF_UNROLL
    for (int c = 0; c < kEach; ++c) {
      const bool seen = (bits >> (kEach * r + c) & 1U) != 0;
      s[r][c] = !seen   ? minus_infinity()
                : plain ? block.rules.scale * s[r][c]
                        : score<false>(block.rules, batch, head, part.query[r],
                                       memory.row[x + kSide * c], s[r][c]);
    }
  }
}

/// Maximum, rescale, weights: into the memory that the rows' threads share. An unseen key's weight
/// is marked by a negative number, because its value may be anything.
template <int W, class Element>
__device__ void absorb(const float (&s)[kEach][kEach], Memory<W, Element>& memory, Part<W>& part,
                       int x, int y) {
  RINGPROOF_UNROLL
  for (int r = 0; r < kEach; ++r) {
    float m = part.m[r];
    RINGPROOF_UNROLL
    for (int c = 0; c < kEach; ++c) m = fmaxf(m, s[r][c]);
    m = row_max(m);
    const Rescale past = rescale(part.m[r], m);
    float sum = 0;
    RINGPROOF_UNROLL
    for (int c = 0; c < kEach; ++c) {
      const bool seen = !is_minus_infinity(s[r][c]);
      const float p = seen ? weight(s[r][c], past.shift) : 0;
      memory.p[y * kEach + r][x + kSide * c] = seen ? p : -1;
      sum += p;
    }
    part.m[r] = m;
    part.l[r] = part.l[r] * past.alpha + row_sum(sum);
    for (int c = 0; c < W / kSide; ++c) part.o[r][c] *= past.alpha;
  }
}

template <int W, class Element>
__device__ void add_values(const Memory<W, Element>& memory, Part<W>& part, int x, int y) {
  for (int j = 0; j < kKeys; ++j) {
    RINGPROOF_UNROLL
    for (int r = 0; r < kEach; ++r) {
      const float p = memory.p[y * kEach + r][j];
      if (p < 0) continue;
      RINGPROOF_UNROLL
      for (int c = 0; c < W / kSide; ++c) {
        part.o[r][c] += p * to_float(memory.v[j][x + kSide * c]);
      }
    }
  }
}

template <int W, class Element>
__global__ void __launch_bounds__(kThreads) register_tiles(BlockArguments<Element> block) {
  RINGPROOF_DYNAMIC_SHARED(bytes);
  Memory<W, Element>& memory = *reinterpret_cast<Memory<W, Element>*>(bytes);
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int first_query = static_cast<int>(blockIdx.x) * kRows;
  const int last_query = min(first_query + kRows, block.queries) - 1;
  const std::size_t keys_at = block.key_row(batch, head, 0) * W;
  load<W>(memory.q, block.q + block.query_row(batch, head, 0) * W, first_query, block.queries);

  Part<W> part;
  for (int r = 0; r < kEach; ++r) {
    const int i = first_query + y * kEach + r;
    part.here[r] = i < block.queries;
    part.query[r] = part.here[r] ? block.query_rows.at(batch, i) : Row{};
    part.at[r] = block.query_row(batch, head, part.here[r] ? i : 0);
    part.m[r] = part.here[r] ? block.m[part.at[r]] : minus_infinity();
    part.l[r] = part.here[r] ? block.l[part.at[r]] : 0;
    for (int c = 0; c < W / kSide; ++c) {
      part.o[r][c] = part.here[r] ? block.o[part.at[r] * W + x + kSide * c] : 0;
    }
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
    float s[kEach][kEach] = {};
    tile_scores(s, memory, block, part, x, y);
    absorb(s, memory, part, x, y);
    __syncthreads();  // the weights are there
    add_values(memory, part, x, y);
  }
  if (tiles_seen == 0) return;  // the states stay as they are
  for (int r = 0; r < kEach; ++r) {
    if (!part.here[r]) continue;
    if (x == 0) block.m[part.at[r]] = part.m[r], block.l[part.at[r]] = part.l[r];
    for (int c = 0; c < W / kSide; ++c) block.o[part.at[r] * W + x + kSide * c] = part.o[r][c];
  }
}

}  // namespace

template <class Element>
void launch_register_tiles(const BlockArguments<Element>& block, cudaStream_t stream) {
  with_width(block.width, [&]<int W>() {
    constexpr std::size_t bytes = sizeof(Memory<W, Element>);
    allow_shared(register_tiles<W, Element>, bytes);
    launch("03_register_tiles", register_tiles<W, Element>, query_grid(block, kRows),
           dim3(kThreads), bytes, stream, block);
  });
}
template void launch_register_tiles(const BlockArguments<float>&, cudaStream_t);
template void launch_register_tiles(const BlockArguments<Bf16>&, cudaStream_t);
template void launch_register_tiles(const BlockArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
