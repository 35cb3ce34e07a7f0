// Read-only views of tensors in the axes [B, H, N, D], and the one matrix that attention needs.
// A view owns nothing; broadcasting and other axis orders live in its strides (0 repeats a value).
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::reference {

/// Numbers in a row, read only. Anything contiguous converts to it.
template <class Real>
using Numbers = std::span<const std::type_identity_t<Real>>;

template <class T>
struct View {
  std::span<const T> data;        // empty: the tensor is absent
  std::array<Index, 4> stride{};  // in elements, per axis B H N D

  explicit operator bool() const { return !data.empty(); }
  const T& operator()(Index b, Index h, Index n, Index d) const {
    return data[static_cast<std::size_t>(b * stride[0] + h * stride[1] + n * stride[2] +
                                         d * stride[3])];
  }
};

/// View of a row-major array; an axis of size 1 is repeated.
template <class T>
View<T> row_major(Numbers<T> data, std::array<Index, 4> size) {
  View<T> view{data, {}};
  Index stride = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    view.stride[axis] = size[axis] == 1 ? 0 : stride;
    stride *= size[axis];
  }
  return view;
}

/// Row-major [rows, columns].
template <class Real>
struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<Real> data;

  Matrix(Index row_count, Index column_count)
      : rows(row_count), columns(column_count), data(row_count * column_count) {}
  std::span<Real> row(Index i) { return std::span(data).subspan(i * columns, columns); }
  Numbers<Real> row(Index i) const { return std::span(data).subspan(i * columns, columns); }
};

}  // namespace ringproof::reference
