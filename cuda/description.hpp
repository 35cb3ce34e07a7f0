// A problem's description on the device: masks, biases, positions, documents. Every rank has all of
// it, as in the scalar tier; q, k and v are what a ring deals out (ring_nccl.cu).
#pragma once

#include "cuda/device/rules.cuh"
#include "cuda/handles.hpp"
#include "reference/problem.hpp"

namespace ringproof::cuda {

class Description {
 public:
  /// Copies begin on `stream`; the object must outlive them.
  Description(const reference::Problem<float>& problem, cudaStream_t stream);

  const Rules& rules() const { return rules_; }
  RowTable query_rows(const reference::Sharding& sharding, Index rank) const;
  RowTable key_rows(const reference::Sharding& sharding, Index rank) const;

 private:
  template <class T>
  const T* upload(std::span<const T> numbers, cudaStream_t stream);

  Rules rules_;
  RowTable query_rows_, key_rows_;
  std::vector<DeviceArray<std::byte>> device_;
  std::vector<PinnedArray<std::byte>> pinned_;
};

}  // namespace ringproof::cuda
