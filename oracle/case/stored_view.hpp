// From a tensor as it is stored to a view in the canonical axes [B, H, N, D], with the shape
// messages.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/spec.hpp"
#include "oracle/case/tensor.hpp"
#include "oracle/case/tensor_table.hpp"

namespace ringproof::oracle {

/// Canonical axes, as indices of Tensor::shape and Tensor::stride.
enum Axis : std::size_t { kBatch, kHead, kRow, kColumn };
using Sizes = std::array<std::int64_t, 4>;  // [B, H, N, D]

/// Which canonical axis each stored axis is, outermost first.
using AxisList = std::span<const Axis>;
/// q, k, v, out, their gradients and their scales: the axis order of the spec.
AxisList feature_axes(AxisOrder);
/// lse and dlse: [B, H, N] in every layout with a batch axis, [H, N] without.
AxisList row_axes(AxisOrder);

/// Stride of each stored axis in elements, also where the tensor says "C order".
std::vector<std::int64_t> strides_of(const StoredTensor&);

/// "[1, 2, 3]".
std::string text_of(std::span<const std::int64_t> shape);

/// View with the stored axes in their canonical places, the others of size 1. Refuses another
/// number of axes; sizes are not checked.
Tensor view(const Source&, std::string_view name, const StoredTensor&, AxisList);

/// Refuses a view whose sizes are not `sizes`; the message speaks in the axes of the file.
void expect_sizes(const Source&, std::string_view name, const StoredTensor&, AxisList,
                  const Sizes& sizes);

/// View of a tensor that numpy's rule broadcasts to `sizes`: full sizes, stride 0 where broadcast.
Tensor broadcast_view(const Source&, std::string_view name, const StoredTensor&,
                      const Sizes& sizes);

}  // namespace ringproof::oracle
