// A tensor of an ONNX test: TensorProto decoded, in the types that a case file has.
#pragma once

#include <string>
#include <vector>

#include "oracle/case/dtype.hpp"
#include "oracle/case/safetensors.hpp"
#include "oracle/onnx/protobuf.hpp"

namespace ringproof::oracle {

/// Numbers in C order, little endian.
struct OnnxTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape{};
  std::vector<std::byte> bytes{};

  std::int64_t elements() const;
};

/// Throws BadInput for a type that no input of the operator has, for data outside the file, and
/// where numbers are missing.
OnnxTensor read_tensor_proto(Bytes message, const std::string& origin);
/// The same from a safetensors file, copied.
OnnxTensor owned(const StoredTensor&);

}  // namespace ringproof::oracle
