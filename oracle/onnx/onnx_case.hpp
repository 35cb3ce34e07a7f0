// An Attention node test as a case, under the operator's semantics (docs/onnx.md says how each
// input and attribute is carried over).
//
//   NodeTest test = read_node_test("test_attention_4d_causal", "test_data_set_0");
//   OnnxCase made = onnx_case(test, "fp32");
//   write_onnx_case("case.safetensors", made);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "oracle/onnx/node_test.hpp"

namespace ringproof::oracle {

struct OnnxCase {
  std::vector<std::pair<std::string, OnnxTensor>> tensors;
  std::string spec;  // JSON
  /// What the test demands beyond attention and is not as it should be: present_key and
  /// present_value are the past and the new rows, bit for bit. Empty: all is well.
  std::vector<std::string> wrong;
};

/// `contract` is a name or a JSON object, or empty. Throws BadInput for a test that breaks the
/// operator's rules.
OnnxCase onnx_case(const NodeTest&, const std::string& contract);
void write_onnx_case(const std::string& path, const OnnxCase&);

}  // namespace ringproof::oracle
