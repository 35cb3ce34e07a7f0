// Any bytes as an ONNX node test: pieces of a length (four bytes) and that many bytes, the model
// first, then one for each tensor that it asks for. onnx_case must return a case or throw BadInput.
#include <algorithm>
#include <cstring>
#include <span>

#include "oracle/case/error.hpp"
#include "oracle/onnx/onnx_case.hpp"

using namespace ringproof::oracle;

namespace {

/// Cuts the next piece off; what is missing at the end is left out.
Bytes piece(Bytes& rest) {
  std::uint32_t length = 0;
  if (rest.size() < sizeof length) return {};
  std::memcpy(&length, rest.data(), sizeof length);
  rest = rest.subspan(sizeof length);
  const Bytes taken = rest.first(std::min<std::size_t>(length, rest.size()));
  rest = rest.subspan(taken.size());
  return taken;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes rest = std::as_bytes(std::span(data, size));
  const Bytes model = piece(rest);
  try {
    onnx_case(
        node_test_of(model, "fuzz",
                     [&](const std::string& name) { return read_tensor_proto(piece(rest), name); }),
        "fp32");
  } catch (const BadInput&) {
  }
  return 0;
}
