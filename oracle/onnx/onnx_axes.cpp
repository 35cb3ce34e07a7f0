#include "oracle/onnx/onnx_axes.hpp"

#include <limits>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {

namespace {

void append(std::vector<std::byte>& bytes, const std::byte* first, std::int64_t count) {
  bytes.insert(bytes.end(), first, first + count);
}

}  // namespace

OnnxTensor heads_apart(const OnnxTensor& tensor, std::int64_t heads, const std::string& where) {
  if (tensor.shape.size() == 4) return tensor;
  if (tensor.shape.size() != 3) throw BadInput(where + " has neither three nor four axes");
  const std::int64_t batches = tensor.shape[0], rows = tensor.shape[1], hidden = tensor.shape[2];
  if (heads <= 0 || hidden % heads != 0) {
    throw BadInput(where + " has three axes, and its number of heads is missing or no divisor");
  }
  OnnxTensor apart{.dtype = tensor.dtype, .shape = {batches, heads, rows, hidden / heads}};
  if (tensor.bytes.empty()) return apart;
  apart.bytes.reserve(tensor.bytes.size());
  const std::int64_t row = hidden / heads * static_cast<std::int64_t>(size_of(tensor.dtype));
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t n = 0; n < rows; ++n) {
        append(apart.bytes, tensor.bytes.data() + ((b * rows + n) * heads + h) * row, row);
      }
    }
  }
  return apart;
}

OnnxTensor joined_rows(const OnnxTensor& first, const OnnxTensor& second,
                       const std::string& where) {
  std::vector<std::int64_t> like_first = second.shape;
  if (first.shape.size() == 4) like_first[2] = first.shape[2];
  if (first.shape != like_first || first.dtype != second.dtype) {
    throw BadInput(where + " does not continue in the new rows: type, heads or columns differ");
  }
  OnnxTensor joined{.dtype = first.dtype, .shape = second.shape};
  if (first.bytes.empty() && second.bytes.empty()) return joined;
  joined.shape[2] = first.shape[2] + second.shape[2];
  const auto size = static_cast<std::int64_t>(size_of(first.dtype));
  const std::int64_t past = first.shape[2] * first.shape[3] * size;
  const std::int64_t fresh = second.shape[2] * second.shape[3] * size;
  for (std::int64_t head = 0; head < first.shape[0] * first.shape[1]; ++head) {
    append(joined.bytes, first.bytes.data() + head * past, past);
    append(joined.bytes, second.bytes.data() + head * fresh, fresh);
  }
  return joined;
}

OnnxTensor padded_columns(const OnnxTensor& mask, std::int64_t columns, const std::string& where) {
  const std::size_t axes = mask.shape.size();
  if (axes == 0 || axes > 4 || mask.bytes.empty() || mask.shape.back() > columns) {
    throw BadInput(where + " has no elements, more than four axes, or more columns than keys");
  }
  const std::int64_t had = mask.shape.back();
  if (had == columns) return mask;
  const std::size_t size = size_of(mask.dtype);
  std::vector<std::byte> hidden(size);
  if (is_float(mask.dtype)) {
    encode(mask.dtype, -std::numeric_limits<double>::infinity(), hidden.data());
  }
  OnnxTensor padded{.dtype = mask.dtype, .shape = mask.shape};
  padded.shape.back() = columns;
  const std::int64_t row = had * static_cast<std::int64_t>(size);
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < mask.shape.size(); ++axis) rows *= mask.shape[axis];
  for (std::int64_t n = 0; n < rows; ++n) {
    append(padded.bytes, mask.bytes.data() + n * row, row);
    for (std::int64_t c = had; c < columns; ++c) {
      padded.bytes.insert(padded.bytes.end(), hidden.begin(), hidden.end());
    }
  }
  return padded;
}

OnnxTensor integers(DType dtype, std::vector<std::int64_t> shape,
                    const std::vector<std::int64_t>& values) {
  OnnxTensor tensor{.dtype = dtype, .shape = std::move(shape)};
  for (const std::int64_t value : values) {
    for (std::size_t n = 0; n < size_of(dtype); ++n) {
      tensor.bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * n));
    }
  }
  return tensor;
}

}  // namespace ringproof::oracle
