// Attributes of the ONNX operator Attention: which there are, since which opset, and what they may
// say. Not here: what they mean for a case (onnx_case.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringproof::oracle {

/// The opsets whose text of the operator this follows.
inline constexpr std::int64_t kFirstOpset = 23, kLastOpset = 25;

/// One attribute as a file has it: a whole number, a binary32 number, or neither.
struct StoredAttribute {
  std::string name;
  std::optional<std::int64_t> integer;
  std::optional<float> number;
};

/// Attributes as the operator's text has them; those that say nothing about Y are left out.
struct AttentionAttributes {
  std::optional<float> scale;
  float softcap = 0;
  bool is_causal = false;
  std::int64_t q_num_heads = 0, kv_num_heads = 0;  // 0: not given
  std::int64_t left_window = -1, right_window = -1;
  std::int64_t softmax_precision = 0;  // a TensorProto.DataType, 0: not given
};

/// Throws BadInput "ORIGIN: ..." for an opset beside those above, and for an attribute that the
/// operator does not have in this opset, that stands there twice, or whose value it does not allow.
AttentionAttributes attention_attributes(const std::vector<StoredAttribute>&, std::int64_t opset,
                                         const std::string& origin);

}  // namespace ringproof::oracle
