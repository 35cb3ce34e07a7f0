// Building problems in memory (owned_problem.hpp).
#include "tests/emulate/owned_problem.hpp"

#include <cassert>

namespace ringproof::emulate {

oracle::Tensor OwnedTensors::add(oracle::DType dtype, std::array<std::int64_t, 4> shape,
                                 std::span<const double> values) {
  assert(static_cast<std::int64_t>(values.size()) == shape[0] * shape[1] * shape[2] * shape[3]);
  const std::size_t width = oracle::size_of(dtype);
  std::vector<std::byte>& bytes = bytes_.emplace_back(values.size() * width + 1);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double value =
        oracle::is_float(dtype) ? oracle::round_nearest(dtype, values[k]) : values[k];
    oracle::encode(dtype, value, bytes.data() + k * width);
  }
  oracle::Tensor tensor{.dtype = dtype, .shape = shape, .data = bytes.data()};
  tensor.stride = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  return tensor;
}

void OwnedProblem::resize(std::int64_t batches, std::int64_t heads, std::int64_t kv_heads,
                          std::int64_t queries, std::int64_t keys, std::int64_t head_dim,
                          std::int64_t value_dim, std::int64_t query_offset) {
  problem.batches = batches, problem.heads = heads, problem.kv_heads = kv_heads;
  problem.queries = queries, problem.keys = keys;
  problem.head_dim = head_dim, problem.value_dim = value_dim;
  problem.key_length.assign(static_cast<std::size_t>(batches), keys);
  problem.position_q.clear(), problem.position_k.clear();
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t i = 0; i < queries; ++i) problem.position_q.push_back(i + query_offset);
    for (std::int64_t j = 0; j < keys; ++j) problem.position_k.push_back(j);
  }
  problem.document_q.assign(problem.position_q.size(), 0);
  problem.document_k.assign(problem.position_k.size(), 0);
}

oracle::Tensor broadcast(oracle::Tensor tensor, std::array<std::int64_t, 4> shape) {
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (tensor.shape[axis] != 1) continue;
    tensor.shape[axis] = shape[axis];
    tensor.stride[axis] = 0;
  }
  return tensor;
}

}  // namespace ringproof::emulate
