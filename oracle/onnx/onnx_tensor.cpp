// Numbers stand either in raw_data, as they are in memory, or in the typed field of their kind: one
// of these is empty. 16-bit floats and Booleans in their typed field are integers.
#include "oracle/onnx/onnx_tensor.hpp"

#include <cstring>
#include <limits>
#include <optional>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {

namespace {

/// TensorProto.DataType.
std::optional<DType> type_of(std::int64_t onnx) {
  switch (onnx) {
    case 1:
      return DType::f32;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 9:
      return DType::boolean;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

/// Field numbers of TensorProto.
enum Field : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kRawData = 9,
  kDoubleData = 10,
  kExternalData = 13,
};

struct Parts {
  std::vector<std::int64_t> dims, integers;
  std::vector<std::byte> raw;  // raw_data, float_data and double_data alike: bytes in order
  std::int64_t type = 0;
};

void append(std::vector<std::byte>& bytes, const WireField& field, std::size_t size) {
  if (field.type == WireType::bytes) {
    bytes.insert(bytes.end(), field.bytes.begin(), field.bytes.end());
    return;
  }
  for (std::size_t n = 0; n < size; ++n) {
    bytes.push_back(static_cast<std::byte>(field.value >> 8 * n));
  }
}

Parts parts_of(Bytes message, const std::string& origin) {
  Parts parts;
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case kDims:
        append_integers(*field, origin, parts.dims);
        break;
      case kDataType:
        parts.type = field->integer();
        break;
      case kInt32Data:
      case kInt64Data:
        append_integers(*field, origin, parts.integers);
        break;
      case kFloatData:
      case kRawData:
        append(parts.raw, *field, sizeof(float));
        break;
      case kDoubleData:
        append(parts.raw, *field, sizeof(double));
        break;
      case kExternalData:
        throw BadInput(origin + ": its numbers are in another file (external_data)");
      default:
        break;
    }
  }
  return parts;
}

}  // namespace

std::int64_t OnnxTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

OnnxTensor read_tensor_proto(Bytes message, const std::string& origin) {
  Parts parts = parts_of(message, origin);
  const auto type = type_of(parts.type);
  if (!type) {
    throw BadInput(origin + ": tensors of the ONNX type " + std::to_string(parts.type) +
                   " are no input of Attention");
  }
  OnnxTensor tensor{.dtype = *type, .shape = std::move(parts.dims), .bytes = std::move(parts.raw)};
  const std::size_t size = size_of(*type);
  for (const std::int64_t integer : parts.integers) {
    for (std::size_t n = 0; n < size; ++n) {
      tensor.bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(integer) >> 8 * n));
    }
  }
  // The product is bounded by what is there before it is formed.
  std::uint64_t count = 1;
  for (const std::int64_t dim : tensor.shape) {
    const bool sound = dim >= 0 && (dim == 0 || count <= tensor.bytes.size());
    if (!sound) throw BadInput(origin + ": the shape does not match the numbers that are there");
    count = dim <= std::numeric_limits<std::int32_t>::max()
                ? count * static_cast<std::uint64_t>(dim)
                : tensor.bytes.size() + 1;
  }
  if (count * size != tensor.bytes.size()) {
    throw BadInput(origin + ": the shape does not match the numbers that are there");
  }
  return tensor;
}

OnnxTensor owned(const StoredTensor& stored) {
  return {.dtype = stored.dtype,
          .shape = stored.shape,
          .bytes = {stored.data, stored.data + stored.bytes()}};
}

}  // namespace ringproof::oracle
