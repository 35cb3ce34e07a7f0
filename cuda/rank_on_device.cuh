// One rank's queries, its two buffers for blocks of keys and values, and the streams and events
// that keep them apart. The copy stream brings and sends blocks, the compute stream works on the
// block in hand; `arrived` says that a buffer is full, `read` that it may be overwritten. Nothing
// else orders the two streams.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/description.hpp"
#include "cuda/kernels/launch.cuh"
#include "cuda/sixteen_bits.hpp"
#include "reference/ring_schedule.hpp"

namespace ringproof::cuda {

using reference::Problem;
using reference::RingPlan;
using reference::Shard;
using reference::ShardAnswer;
using reference::Trace;

/// A number of the problem as the device stores it; exact, because the caller chose the type so.
template <class T>
T stored(float number) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return {bf16_of_float(number)};
  } else if constexpr (std::is_same_v<T, Fp16>) {
    return {fp16_of_float(number)};
  } else {
    return number;
  }
}

/// Rows [rows, columns] at the start of rows of `width`, zeros behind.
template <class T>
void pad(std::span<const float> numbers,  // [rows, columns]
         Index columns, int width,
         std::span<T> padded) {  // [rows, width]
  std::fill(padded.begin(), padded.end(), stored<T>(0));
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    padded[n / columns * width + n % columns] = stored<T>(numbers[n]);
  }
}

/// The smallest width that holds a row of q and of v.
inline int padded_width(const Problem<float>& problem) {
  for (const int width : kWidths) {
    if (problem.head_dim <= width && problem.value_dim <= width) return width;
  }
  throw DeviceError("heads wider than " + std::to_string(kMostHeadDim) + " are not supported");
}

/// What a rank has on its device in every pass, and how blocks come and go.
template <class T>
struct RankOnDevice {
  RankOnDevice(const Problem<float>& whole, const Shard<float>& shard, const RingPlan& ring_plan,
               ncclComm_t ring_communicator)
      : problem(whole),
        plan(ring_plan),
        communicator(ring_communicator),
        queries(shard.queries.sharding),
        keys(shard.keys.sharding),
        rank(shard.queries.rank),
        width(padded_width(problem)),
        rows(problem.batches * problem.heads * row_count(queries, rank)),
        description(problem, copy.get()),
        q_pinned(rows * width),
        kv_pinned(block_size(rank)),
        q(rows * width) {
    std::size_t largest = 0;
    for (Index origin = 0; origin < plan.ranks; ++origin) {
      largest = std::max(largest, block_size(origin));
    }
    for (auto& buffer : kv) buffer = DeviceArray<T>(largest);
    const auto halves = kv_pinned.numbers();
    pad<T>(shard.queries.q, problem.head_dim, width, q_pinned.numbers());
    pad<T>(shard.keys.k, problem.head_dim, width, halves.first(halves.size() / 2));
    pad<T>(shard.keys.v, problem.value_dim, width, halves.last(halves.size() / 2));
  }

  /// Numbers in a block: keys and values of one rank.
  std::size_t block_size(Index origin) const {
    return 2 * static_cast<std::size_t>(problem.batches * problem.kv_heads *
                                        row_count(keys, origin) * width);
  }
  std::size_t block_bytes(Index origin) const { return block_size(origin) * sizeof(T); }

  void upload();
  void pass_on(Index step, Trace& trace);
  /// Everything about the rank's queries and a block, without states.
  BlockArguments<T> arguments(Index origin, int buffer) const;

  const Problem<float>& problem;
  const RingPlan& plan;
  ncclComm_t communicator;
  reference::Sharding queries, keys;
  Index rank;
  int width;
  std::size_t rows;  // of all heads
  StreamOwner copy = make_stream(), compute = make_stream();
  EventOwner arrived[2] = {make_event(), make_event()}, read[2] = {make_event(), make_event()};
  Description description;
  PinnedArray<T> q_pinned, kv_pinned;
  DeviceArray<T> q, kv[2];
};

/// L2: the rank's queries and its own block.
template <class T>
void RankOnDevice<T>::upload() {
  if (rows > 0) {
    check(cudaMemcpyAsync(q.get(), q_pinned.numbers().data(), q.bytes(), cudaMemcpyHostToDevice,
                          copy.get()));
  }
  if (block_size(rank) > 0) {
    check(cudaMemcpyAsync(kv[0].get(), kv_pinned.numbers().data(), block_bytes(rank),
                          cudaMemcpyHostToDevice, copy.get()));
  }
  check(cudaEventRecord(arrived[0].get(), copy.get()));
}

/// L4 and L7: the block in hand to the neighbour, the next one into the other buffer.
template <class T>
void RankOnDevice<T>::pass_on(Index step, Trace& trace) {
  const Index P = plan.ranks;
  const int here = static_cast<int>(step % 2), there = 1 - here;
  const Index block = block_at(step, rank, P, plan.direction);
  const Index next = block_at(step + 1, rank, P, plan.direction);
  const int to = static_cast<int>(send_to(rank, P, plan.direction));
  const int from = static_cast<int>(receive_from(rank, P, plan.direction));
  check(cudaStreamWaitEvent(copy.get(), read[there].get(), 0));
  check(ncclGroupStart());
  if (block_bytes(block) > 0) {
    check(ncclSend(kv[here].get(), block_bytes(block), ncclInt8, to, communicator, copy.get()));
  }
  if (block_bytes(next) > 0) {
    check(ncclRecv(kv[there].get(), block_bytes(next), ncclInt8, from, communicator, copy.get()));
  }
  check(ncclGroupEnd());
  check(cudaEventRecord(arrived[there].get(), copy.get()));
  trace.push_back(
      {step, rank, reference::Action::post, block, to, static_cast<Index>(block_bytes(block)), 0});
}

template <class T>
BlockArguments<T> RankOnDevice<T>::arguments(Index origin, int buffer) const {
  BlockArguments<T> block;
  block.q = q.get();
  block.k = kv[buffer].get();
  block.v = kv[buffer].get() + block_size(origin) / 2;
  block.batches = static_cast<int>(problem.batches);
  block.heads = static_cast<int>(problem.heads);
  block.kv_heads = static_cast<int>(problem.kv_heads);
  block.queries = static_cast<int>(row_count(queries, rank));
  block.keys = static_cast<int>(row_count(keys, origin));
  block.width = width;
  block.query_rows = description.query_rows(queries, rank);
  block.key_rows = description.key_rows(keys, origin);
  block.rules = description.rules();
  return block;
}

}  // namespace ringproof::cuda
