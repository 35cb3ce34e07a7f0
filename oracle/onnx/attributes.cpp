#include "oracle/onnx/attributes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {

namespace {

/// What the operator's text allows: whole numbers from `least` to `most`, or any binary32 number
/// (the reader of the case judges those).
struct Rule {
  std::string_view name;
  std::int64_t since;
  bool whole;
  std::int64_t least = 0, most = 0;
};

constexpr std::int64_t kManyHeads = 1 << 20;  // more than a case can have
constexpr std::int64_t kFarthest = std::int64_t{1} << 40;
constexpr std::array kRules{
    Rule{"is_causal", 23, true, 0, 1},
    Rule{"kv_num_heads", 23, true, 1, kManyHeads},
    Rule{"left_window_size", 25, true, -1, kFarthest},
    Rule{"q_num_heads", 23, true, 1, kManyHeads},
    Rule{"qk_matmul_output_mode", 23, true, 0, 3},
    Rule{"right_window_size", 25, true, -1, kFarthest},
    Rule{"scale", 23, false},
    Rule{"softcap", 23, false},
    Rule{"softmax_precision", 23, true, 1, 16},
};

const Rule& rule_of(const StoredAttribute& stored, std::int64_t opset, const std::string& origin) {
  const std::string attribute = origin + ": attribute " + in_quotes(stored.name);
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Rule& one) { return one.name == stored.name; });
  if (rule == kRules.end()) throw BadInput(attribute + " is none of Attention");
  if (rule->since > opset) {
    throw BadInput(attribute + " is none of Attention in opset " + std::to_string(opset) +
                   ", it came with " + std::to_string(rule->since));
  }
  if (rule->whole ? !stored.integer : !stored.number) {
    throw BadInput(attribute + " is no " + (rule->whole ? "whole" : "binary32") + " number");
  }
  if (rule->whole && (*stored.integer < rule->least || *stored.integer > rule->most)) {
    throw BadInput(attribute + " is " + std::to_string(*stored.integer) + ", not from " +
                   std::to_string(rule->least) + " to " + std::to_string(rule->most));
  }
  return *rule;
}

void set_attribute(AttentionAttributes& attributes, const StoredAttribute& stored) {
  if (stored.name == "scale") attributes.scale = stored.number;
  if (stored.name == "softcap") attributes.softcap = *stored.number;
  if (stored.name == "is_causal") attributes.is_causal = *stored.integer == 1;
  if (stored.name == "q_num_heads") attributes.q_num_heads = *stored.integer;
  if (stored.name == "kv_num_heads") attributes.kv_num_heads = *stored.integer;
  if (stored.name == "left_window_size") attributes.left_window = *stored.integer;
  if (stored.name == "right_window_size") attributes.right_window = *stored.integer;
  if (stored.name == "softmax_precision") attributes.softmax_precision = *stored.integer;
}

/// FLOAT, FLOAT16, DOUBLE and BFLOAT16 of TensorProto.DataType; 0 for not given.
bool is_precision(std::int64_t type) {
  return type == 0 || type == 1 || type == 10 || type == 11 || type == 16;
}

}  // namespace

AttentionAttributes attention_attributes(const std::vector<StoredAttribute>& stored,
                                         std::int64_t opset, const std::string& origin) {
  if (opset < kFirstOpset || opset > kLastOpset) {
    throw BadInput(origin + ": opset " + std::to_string(opset) + " is not from " +
                   std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset));
  }
  AttentionAttributes attributes;
  std::vector<std::string_view> seen;
  for (const StoredAttribute& one : stored) {
    const std::string_view name = rule_of(one, opset, origin).name;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      throw BadInput(origin + ": attribute " + in_quotes(name) + " stands there twice");
    }
    seen.push_back(name);
    set_attribute(attributes, one);
  }
  if (!is_precision(attributes.softmax_precision)) {
    throw BadInput(origin + ": attribute \"softmax_precision\" is " +
                   std::to_string(attributes.softmax_precision) + ", no type of softmax");
  }
  return attributes;
}

}  // namespace ringproof::oracle
