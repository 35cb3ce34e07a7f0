// A problem whose tensors live in memory: the bytes, and the Problem that points into them.
// It decides nothing about masks; who builds it fills positions, documents and lengths.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::emulate {

/// Tensors are contiguous in the canonical axes [B, H, N, D]. Moving keeps the views valid (the
/// bytes
/// stay where they are); copying would not, so it is forbidden.
class OwnedTensors {
 public:
  OwnedTensors() = default;
  OwnedTensors(OwnedTensors&&) = default;
  OwnedTensors& operator=(OwnedTensors&&) = default;

  /// Stores `values`, each rounded to nearest into `dtype`; the view of all of them.
  oracle::Tensor add(oracle::DType dtype, std::array<std::int64_t, 4> shape,
                     std::span<const double> values);  // [product of shape]

 private:
  std::deque<std::vector<std::byte>> bytes_;
};

struct OwnedProblem {
  OwnedTensors tensors;
  oracle::Problem problem;

  /// Sizes, and the resolved defaults: every row in document 0, positions 0.. (query offset added),
  /// key length Nk.
  void resize(std::int64_t batches, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
              std::int64_t keys, std::int64_t head_dim, std::int64_t value_dim,
              std::int64_t query_offset = 0);
};

/// View of a [B, H, Nq, Nk] tensor that repeats along every axis whose stored size is 1.
oracle::Tensor broadcast(oracle::Tensor, std::array<std::int64_t, 4> shape);

}  // namespace ringproof::emulate
