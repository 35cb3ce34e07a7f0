// Axis orders and broadcasting become strides here, and nowhere else (stored_view.hpp).
#include "oracle/case/stored_view.hpp"

namespace ringproof::oracle {
namespace {

constexpr std::array<Axis, 4> kBhnd{kBatch, kHead, kRow, kColumn};
constexpr std::array<Axis, 4> kBnhd{kBatch, kRow, kHead, kColumn};
constexpr std::array<Axis, 3> kNhd{kRow, kHead, kColumn};
constexpr std::array<Axis, 3> kBhn{kBatch, kHead, kRow};
constexpr std::array<Axis, 2> kHn{kHead, kRow};

}  // namespace

std::vector<std::int64_t> strides_of(const StoredTensor& tensor) {
  if (!tensor.stride.empty()) return tensor.stride;
  std::vector<std::int64_t> strides(tensor.shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = step;
    // An axis of size 0 has no element to step to; 1 keeps the products in range.
    step *= tensor.shape[axis] > 0 ? tensor.shape[axis] : 1;
  }
  return strides;
}

AxisList feature_axes(AxisOrder order) {
  if (order == AxisOrder::bhnd) return kBhnd;
  if (order == AxisOrder::bnhd) return kBnhd;
  return kNhd;
}

AxisList row_axes(AxisOrder order) {
  return order == AxisOrder::nhd ? AxisList(kHn) : AxisList(kBhn);
}

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

Tensor view(const Source& source, std::string_view name, const StoredTensor& stored,
            AxisList axes) {
  if (stored.shape.size() != axes.size()) {
    refuse_tensor(
        source, name,
        "shape " + text_of(stored.shape) + " must have " + std::to_string(axes.size()) + " axes");
  }
  const auto strides = strides_of(stored);
  Tensor tensor{stored.dtype, {1, 1, 1, 1}, {0, 0, 0, 0}, stored.data};
  for (std::size_t n = 0; n < axes.size(); ++n) {
    tensor.shape[axes[n]] = stored.shape[n];
    tensor.stride[axes[n]] = strides[n];
  }
  return tensor;
}

void expect_sizes(const Source& source, std::string_view name, const StoredTensor& stored,
                  AxisList axes, const Sizes& sizes) {
  std::vector<std::int64_t> expected;
  for (const Axis axis : axes) expected.push_back(sizes[axis]);
  if (stored.shape == expected) return;
  refuse_tensor(source, name, "shape " + text_of(stored.shape) + " must be " + text_of(expected));
}

Tensor broadcast_view(const Source& source, std::string_view name, const StoredTensor& stored,
                      const Sizes& sizes) {
  const std::size_t count = stored.shape.size();
  const auto refuse = [&] {
    refuse_tensor(source, name,
                  "shape " + text_of(stored.shape) + " does not broadcast to " + text_of(sizes) +
                      " = [B, H, Nq, Nk]");
  };
  if (count > sizes.size()) refuse();
  Tensor tensor = view(source, name, stored, AxisList(kBhnd).last(count));
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (tensor.shape[axis] == sizes[axis]) continue;
    if (tensor.shape[axis] != 1) refuse();
    tensor.shape[axis] = sizes[axis];
    tensor.stride[axis] = 0;
  }
  return tensor;
}

}  // namespace ringproof::oracle
