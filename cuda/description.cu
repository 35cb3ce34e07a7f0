// Uploading a description (description.hpp).
#include "cuda/description.hpp"

#include <cstring>

namespace ringproof::cuda {

/// Null for what is absent.
template <class T>
const T* Description::upload(std::span<const T> numbers, cudaStream_t stream) {
  if (numbers.empty()) return nullptr;
  PinnedArray<std::byte> pinned(numbers.size_bytes());
  DeviceArray<std::byte> device(numbers.size_bytes());
  std::memcpy(pinned.numbers().data(), numbers.data(), numbers.size_bytes());
  check(cudaMemcpyAsync(device.get(), pinned.numbers().data(), numbers.size_bytes(),
                        cudaMemcpyHostToDevice, stream));
  const auto* address = reinterpret_cast<const T*>(device.get());
  device_.push_back(std::move(device));
  pinned_.push_back(std::move(pinned));
  return address;
}

Description::Description(const reference::Problem<float>& problem, cudaStream_t stream) {
  rules_.scale = problem.scale, rules_.softcap = problem.softcap;
  rules_.causal = problem.causal;
  rules_.window_left = problem.window_left, rules_.window_right = problem.window_right;
  rules_.nan_where_empty = problem.empty_row == reference::EmptyRow::nan && !problem.sinks;

  const auto pairs = [&]<class T>(const reference::View<T>& view) {
    Pairs<T> uploaded{upload(view.data, stream), {}};
    for (int axis = 0; axis < 4; ++axis) uploaded.stride[axis] = view.stride[axis];
    return uploaded;
  };
  rules_.bias = pairs(problem.bias), rules_.mask = pairs(problem.mask);
  rules_.slopes = pairs(problem.alibi_slopes);
  rules_.sinks = upload(problem.sinks.data, stream);  // [H], one after the other

  query_rows_.offset = problem.offset;
  query_rows_.position = upload(problem.position_q.data, stream);
  query_rows_.position_stride = problem.position_q.stride[0];
  query_rows_.document = upload(problem.document_q.data, stream);
  key_rows_.position = upload(problem.position_k.data, stream);
  key_rows_.position_stride = problem.position_k.stride[0];
  key_rows_.document = upload(problem.document_k.data, stream);
  key_rows_.length = upload(problem.key_lengths.data, stream);
}

RowTable Description::query_rows(const reference::Sharding& sharding, Index rank) const {
  RowTable table = query_rows_;
  table.sharding = sharding, table.rank = rank;
  return table;
}

RowTable Description::key_rows(const reference::Sharding& sharding, Index rank) const {
  RowTable table = key_rows_;
  table.sharding = sharding, table.rank = rank;
  return table;
}

}  // namespace ringproof::cuda
