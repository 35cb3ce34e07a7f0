// A strided view of a stored tensor in the canonical axes [B, H, N, D]; owns nothing.
// The axis order of the file (bhnd, bnhd, nhd) and broadcasting (stride 0) live in the strides, so
// nobody after the reader has to know about them.
#pragma once

#include <array>
#include <cstdint>

#include "oracle/case/dtype.hpp"

namespace ringproof::oracle {

struct Tensor {
  DType dtype = DType::f64;
  std::array<std::int64_t, 4> shape{};   // canonical sizes; absent axes are 1
  std::array<std::int64_t, 4> stride{};  // in elements
  const std::byte* data = nullptr;       // nullptr: the tensor is absent

  explicit operator bool() const { return data != nullptr; }
  const std::byte* address(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) const {
    return data + (b * stride[0] + h * stride[1] + n * stride[2] + d * stride[3]) *
                      static_cast<std::int64_t>(size_of(dtype));
  }
  /// Exact value of one element.
  double at(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) const {
    return decode(dtype, address(b, h, n, d));
  }
};

}  // namespace ringproof::oracle
