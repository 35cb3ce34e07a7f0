// The backward pass of one rank on its device: the loop of reference/ring_backward.hpp, whose lines
// it numbers. Behind each block of keys and values travels the sum of its gradients in fp32, in two
// buffers of its own; the sum makes P hops and comes home. dq stays.
#pragma once

#include "cuda/kernels/gradients.cuh"
#include "cuda/rank_on_device.cuh"
#include "reference/ring_backward.hpp"

namespace ringproof::cuda {

using reference::ShardGradients;
using reference::UpstreamShard;

template <class T>
class BackwardPass {
 public:
  BackwardPass(RankOnDevice<T>& device, const UpstreamShard<float>& kept)
      : device_(device),
        dout_pinned_(device.rows * device.width),
        row_pinned_(2 * device.rows),
        dq_pinned_(dout_pinned_.size()),
        sum_pinned_(device.block_size(device.rank)),
        dout_(dout_pinned_.size()),
        row_(2 * device.rows),
        dq_(dout_pinned_.size()) {
    for (auto& sum : sum_) sum = DeviceArray<float>(device.kv[0].size());
    pad<T>(kept.dout, device.problem.value_dim, device.width, dout_pinned_.numbers());
    const auto numbers = row_pinned_.numbers();
    std::copy(kept.lse.begin(), kept.lse.end(), numbers.begin());
    std::copy(kept.delta.begin(), kept.delta.end(), numbers.begin() + kept.lse.size());
  }

  /// dq, dk and dv of the rank.
  ShardGradients<float> run(Trace& trace);

 private:
  void begin();
  GradientArguments<T> arguments(Index origin, int buffer) const;
  void pass_gradients(Index step, Trace& trace);
  ShardGradients<float> finish(int buffer);

  RankOnDevice<T>& device_;
  EventOwner added_ = make_event();
  EventOwner sum_arrived_[2] = {make_event(), make_event()};
  PinnedArray<T> dout_pinned_;
  PinnedArray<float> row_pinned_, dq_pinned_, sum_pinned_;
  DeviceArray<T> dout_;
  DeviceArray<float> row_, dq_, sum_[2];  // row_: the LSE of all rows, then their delta
};

/// B1: upstream gradients, the rank's own block, and no gradient of it yet.
template <class T>
void BackwardPass<T>::begin() {
  const cudaStream_t copy = device_.copy.get(), compute = device_.compute.get();
  if (device_.rows > 0) {
    check(cudaMemcpyAsync(dout_.get(), dout_pinned_.numbers().data(), dout_.bytes(),
                          cudaMemcpyHostToDevice, copy));
    check(cudaMemcpyAsync(row_.get(), row_pinned_.numbers().data(), row_.bytes(),
                          cudaMemcpyHostToDevice, copy));
    check(cudaMemsetAsync(dq_.get(), 0, dq_.bytes(), compute));
  }
  if (sum_pinned_.size() > 0) {
    check(cudaMemsetAsync(sum_[0].get(), 0, sum_pinned_.size() * sizeof(float), compute));
  }
  device_.upload();
}

template <class T>
GradientArguments<T> BackwardPass<T>::arguments(Index origin, int buffer) const {
  GradientArguments<T> given;
  given.block = device_.arguments(origin, buffer);
  given.dout = dout_.get();
  given.lse = row_.get(), given.delta = row_.get() + device_.rows;
  given.dq = dq_.get();
  given.dk = sum_[buffer].get();
  given.dv = sum_[buffer].get() + device_.block_size(origin) / 2;
  return given;
}

/// B6: the sum with this rank's part to the neighbour, the next one into the other buffer.
template <class T>
void BackwardPass<T>::pass_gradients(Index step, Trace& trace) {
  const auto& [P, layout, direction] = device_.plan;
  const int here = static_cast<int>(step % 2), there = 1 - here;
  const Index block = block_at(step, device_.rank, P, direction);
  const Index next = block_at(step + 1, device_.rank, P, direction);
  const int to = static_cast<int>(send_to(device_.rank, P, direction));
  const int from = static_cast<int>(receive_from(device_.rank, P, direction));
  const std::size_t sent = device_.block_size(block), received = device_.block_size(next);
  const cudaStream_t copy = device_.copy.get();
  check(cudaEventRecord(added_.get(), device_.compute.get()));
  check(cudaStreamWaitEvent(copy, added_.get(), 0));
  check(ncclGroupStart());
  if (sent > 0) {
    check(ncclSend(sum_[here].get(), sent, ncclFloat32, to, device_.communicator, copy));
  }
  if (received > 0) {
    check(ncclRecv(sum_[there].get(), received, ncclFloat32, from, device_.communicator, copy));
  }
  check(ncclGroupEnd());
  check(cudaEventRecord(sum_arrived_[there].get(), copy));
  trace.push_back({step, device_.rank, reference::Action::post_gradient, block, to,
                   static_cast<Index>(sent * sizeof(float)), 0});
  trace.push_back({step, device_.rank, reference::Action::wait_gradient, next, from,
                   static_cast<Index>(received * sizeof(float)), 0});
}

template <class T>
ShardGradients<float> BackwardPass<T>::finish(int buffer) {
  const cudaStream_t compute = device_.compute.get();
  check(cudaStreamWaitEvent(compute, sum_arrived_[buffer].get(), 0));
  if (device_.rows > 0) {
    check(cudaMemcpyAsync(dq_pinned_.numbers().data(), dq_.get(), dq_.bytes(),
                          cudaMemcpyDeviceToHost, compute));
  }
  if (sum_pinned_.size() > 0) {
    check(cudaMemcpyAsync(sum_pinned_.numbers().data(), sum_[buffer].get(),
                          sum_pinned_.size() * sizeof(float), cudaMemcpyDeviceToHost, compute));
  }
  check(cudaStreamSynchronize(compute));

  const auto& problem = device_.problem;
  const auto cut = [&](std::span<float> padded, Index columns) {
    std::vector<float> numbers;
    for (std::size_t at = 0; at < padded.size(); at += device_.width) {
      numbers.insert(numbers.end(), &padded[at], &padded[at] + columns);
    }
    return numbers;
  };
  const auto sums = sum_pinned_.numbers();
  ShardGradients<float> gradients;
  gradients.queries.dq = cut(dq_pinned_.numbers(), problem.head_dim);
  gradients.keys.origin = device_.rank;
  gradients.keys.dk = cut(sums.first(sums.size() / 2), problem.head_dim);
  gradients.keys.dv = cut(sums.last(sums.size() / 2), problem.value_dim);
  return gradients;
}

template <class T>
ShardGradients<float> BackwardPass<T>::run(Trace& trace) {
  const auto& [P, layout, direction] = device_.plan;
  const cudaStream_t compute = device_.compute.get();
  begin();                                                // B1
  for (Index t = 0; t < reference::step_count(P); ++t) {  // B2
    const bool travels = reference::transfers_after(t, P);
    if (travels) device_.pass_on(t, trace);  // B3
    const int here = static_cast<int>(t % 2);
    const Index origin = block_at(t, device_.rank, P, direction);
    check(cudaStreamWaitEvent(compute, device_.arrived[here].get(), 0));
    check(cudaStreamWaitEvent(compute, sum_arrived_[here].get(), 0));
    launch_gradients(arguments(origin, here), compute);  // B4, B5
    check(cudaEventRecord(device_.read[here].get(), compute));
    trace.push_back({t, device_.rank, reference::Action::gradient, origin, -1, 0, 0});
    pass_gradients(t, trace);  // B6
    if (travels) {             // B7 is the events' matter
      const Index next = block_at(t + 1, device_.rank, P, direction);
      trace.push_back({t, device_.rank, reference::Action::wait, next,
                       receive_from(device_.rank, P, direction),
                       static_cast<Index>(device_.block_bytes(next)), 0});
    }
  }
  return finish(static_cast<int>(P % 2));
}

}  // namespace ringproof::cuda
