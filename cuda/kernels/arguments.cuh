// What every kernel of the ladder is given: one rank's queries, one block of keys and values, the
// states of the rows so far, and the rules. Kernels fold the block into the states; a ring calls
// them once a step with the next block. finish.cu makes the answer of the states.
#pragma once

#include "cuda/device/rules.cuh"

namespace ringproof::cuda {

/// Rows are padded with zeros to one width for D and Dv, which changes no sum.
inline constexpr int kWidths[] = {32, 64, 128};

template <class Element>
struct BlockArguments {
  const Element* q = nullptr;  // [B, H, queries, width]
  const Element* k = nullptr;  // [B, Hkv, keys, width]
  const Element* v = nullptr;  // [B, Hkv, keys, width]
  float* m = nullptr;          // [B, H, queries], in and out
  float* l = nullptr;          // [B, H, queries]
  float* o = nullptr;          // [B, H, queries, width]
  int batches = 1, heads = 1, kv_heads = 1;
  int queries = 0, keys = 0, width = 0;
  RowTable query_rows, key_rows;
  Rules rules;

  __host__ __device__ int kv_head(int head) const { return head / (heads / kv_heads); }
  __host__ __device__ std::size_t query_row(int batch, int head, int query) const {
    return (static_cast<std::size_t>(batch) * heads + head) * queries + query;
  }
  __host__ __device__ std::size_t key_row(int batch, int head, int key) const {
    return (static_cast<std::size_t>(batch) * kv_heads + kv_head(head)) * keys + key;
  }
};

/// States in, answers out.
struct FinishArguments {
  const float* m = nullptr;  // [B, H, queries]
  const float* l = nullptr;  // [B, H, queries]
  float* o = nullptr;        // [B, H, queries, width], in: the sums, out: the answer
  float* lse = nullptr;      // [B, H, queries]
  int batches = 1, heads = 1, queries = 0, width = 0;
  Rules rules;
};

/// States of rows that have seen nothing: m is minus infinity, l and o are zero.
void launch_empty_states(float* m, float* l, float* o, int rows, int width, cudaStream_t stream);
void launch_finish(const FinishArguments& arguments, cudaStream_t stream);

}  // namespace ringproof::cuda
