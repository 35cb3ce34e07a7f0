// A node test of the ONNX operator Attention: what the node is, what goes in, what must come out.
// Not here: what that means as an attention problem (onnx_case.hpp).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "oracle/onnx/attributes.hpp"
#include "oracle/onnx/onnx_tensor.hpp"

namespace ringproof::oracle {

struct NodeTest {
  std::string name;    // of the test, for messages and the case's origin
  std::string origin;  // the path
  std::int64_t opset = 0;
  AttentionAttributes attributes{};
  /// By formal name: Q K V attn_mask past_key past_value nonpad_kv_seqlen Y present_key
  /// present_value qk_matmul_output; those the test has.
  std::map<std::string, OnnxTensor> tensors{};

  const OnnxTensor* find(const std::string& formal) const;
};

/// Reads a folder with model.onnx and data_set/{input,output}_N.pb, or a safetensors file whose
/// tensors carry the formal names and whose metadata is {"kind": "onnx", "attributes": {...}}.
/// Throws BadInput; a model of anything but one Attention node is one.
NodeTest read_node_test(const std::string& path, const std::string& data_set);

/// The same of a ModelProto in memory; `tensor("input_0")` reads the graph's first input.
NodeTest node_test_of(Bytes model, const std::string& origin,
                      const std::function<OnnxTensor(const std::string& file)>& tensor);

}  // namespace ringproof::oracle
