#include "oracle/onnx/onnx_case.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "oracle/case/assemble.hpp"
#include "oracle/case/case_file.hpp"
#include "oracle/case/error.hpp"
#include "oracle/onnx/onnx_axes.hpp"

namespace ringproof::oracle {

namespace {

using Json = nlohmann::json;

/// A C99 hexadecimal number, which the spec reads back to the same value.
std::string every_digit(float x) {
  char text[32];
  std::snprintf(text, sizeof text, "%a", static_cast<double>(x));
  return text;
}

class Mapping {
 public:
  explicit Mapping(const NodeTest& test) : test_(test) {}

  OnnxCase made(const std::string& contract) {
    queries_and_keys();
    lengths();
    positions();
    mask();
    if (const OnnxTensor* y = test_.find("Y")) {
      add("out", heads_apart(*y, test_.attributes.q_num_heads, place("Y")));
    }
    spec(contract);
    require_sound();
    return std::move(made_);
  }

 private:
  /// What the reader of the case would refuse is refused now, in the name of the test.
  void require_sound() const {
    Source source{.path = test_.origin, .tensors = {}};
    for (const auto& [name, tensor] : made_.tensors) {
      source.tensors[name] = {
          .dtype = tensor.dtype, .shape = tensor.shape, .stride = {}, .data = tensor.bytes.data()};
    }
    check_table(source);
    assemble_case(source, source, parse_spec(made_.spec, test_.origin));
  }

  std::string place(const std::string& what) const { return test_.origin + ": " + what; }

  void add(const std::string& name, OnnxTensor tensor) {
    made_.tensors.emplace_back(name, std::move(tensor));
  }

  const OnnxTensor& needed(const std::string& formal) const {
    if (const OnnxTensor* tensor = test_.find(formal)) return *tensor;
    throw BadInput(place(formal + " is missing"));
  }

  void queries_and_keys() {
    OnnxTensor q = heads_apart(needed("Q"), test_.attributes.q_num_heads, place("Q"));
    queries_ = q.shape[2];
    batches_ = q.shape[0];
    require_elements(q, "Q");
    add("q", std::move(q));
    if ((test_.find("past_key") == nullptr) != (test_.find("past_value") == nullptr)) {
      throw BadInput(place("past_key and past_value are used together"));
    }
    add("k", with_past("K", "past_key", "present_key"));
    keys_ = made_.tensors.back().second.shape[2];
    add("v", with_past("V", "past_value", "present_value"));
  }

  /// New rows behind the past ones; the present the test shows must be just that.
  OnnxTensor with_past(const char* formal, const char* past_name, const char* present_name) {
    OnnxTensor rows = heads_apart(needed(formal), test_.attributes.kv_num_heads, place(formal));
    if (const OnnxTensor* past = test_.find(past_name)) {
      past_ = past->shape.size() == 4 ? past->shape[2] : 0;
      rows = joined_rows(*past, rows, place(past_name));
    }
    const OnnxTensor* present = test_.find(present_name);
    if (present != nullptr && (present->shape != rows.shape || present->bytes != rows.bytes)) {
      made_.wrong.push_back(std::string(present_name) + " is not the past and the new rows");
    }
    require_elements(rows, formal);
    return rows;
  }

  /// A size that no element backs is only a claim, and nothing is laid out for a claim.
  void require_elements(const OnnxTensor& tensor, const char* formal) const {
    if (tensor.bytes.empty()) throw BadInput(place(std::string(formal) + " has no elements"));
  }

  void lengths() {
    const OnnxTensor* length = test_.find("nonpad_kv_seqlen");
    if (length == nullptr) return;
    if (test_.find("past_key") != nullptr) {
      throw BadInput(place("nonpad_kv_seqlen and a past exclude each other"));
    }
    if (length->dtype != DType::i64 || length->shape != std::vector<std::int64_t>{batches_}) {
      throw BadInput(place("nonpad_kv_seqlen is not I64 [B]"));
    }
    std::vector<std::int64_t> stored;
    for (std::int64_t b = 0; b < batches_; ++b) {
      stored.push_back(decode_integer(DType::i64, length->bytes.data() + 8 * b));
      if (stored.back() < 0 || stored.back() > keys_) {
        throw BadInput(place("nonpad_kv_seqlen is not from 0 to the number of keys"));
      }
    }
    add("key_lengths", integers(DType::i32, {batches_}, stored));
    lengths_ = std::move(stored);
  }

  /// Query i stands at offset + i: behind the past, or at the end of the valid keys. Nothing else
  /// asks for positions.
  void positions() {
    const AttentionAttributes& node = test_.attributes;
    const bool asked = node.is_causal || node.left_window >= 0 || node.right_window >= 0;
    if (!asked || (past_ == 0 && lengths_.empty())) return;
    std::vector<std::int64_t> stored;
    for (std::int64_t b = 0; b < batches_; ++b) {
      const std::int64_t offset =
          lengths_.empty() ? past_ : lengths_[static_cast<std::size_t>(b)] - queries_;
      for (std::int64_t i = 0; i < queries_; ++i) stored.push_back(offset + i);
    }
    add("positions_q", integers(DType::i64, {batches_, queries_}, stored));
  }

  /// A mask with fewer columns than there are keys hides the others.
  void mask() {
    const OnnxTensor* mask = test_.find("attn_mask");
    if (mask == nullptr) return;
    const bool boolean = mask->dtype == DType::boolean;
    add(boolean ? "mask" : "bias", padded_columns(*mask, keys_, place("attn_mask")));
  }

  void spec(const std::string& contract) {
    const AttentionAttributes& node = test_.attributes;
    Json json{{"version", 1},
              {"about", {{"origin", "ONNX node test " + test_.name}, {"opset", test_.opset}}}};
    if (node.softmax_precision != 0) json["about"]["softmax_precision"] = node.softmax_precision;
    if (node.scale) json["scale"] = every_digit(*node.scale);
    if (node.softcap != 0) json["softcap"] = every_digit(node.softcap);
    if (node.is_causal) json["causal"] = "top_left";
    if (node.left_window >= 0 || node.right_window >= 0) {
      json["window"] = {node.left_window, node.right_window};
    }
    if (!contract.empty()) {
      const Json object = Json::parse(contract, nullptr, false);
      json["contract"] = object.is_object() ? object : Json(contract);
    }
    made_.spec = json.dump();
  }

  const NodeTest& test_;
  OnnxCase made_;
  std::int64_t batches_ = 0, queries_ = 0, keys_ = 0, past_ = 0;
  std::vector<std::int64_t> lengths_;  // [B], or empty
};

}  // namespace

OnnxCase onnx_case(const NodeTest& test, const std::string& contract) {
  return Mapping(test).made(contract);
}

void write_onnx_case(const std::string& path, const OnnxCase& made) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : made.tensors) {
    tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
  }
  write_case(path, tensors, made.spec);
}

}  // namespace ringproof::oracle
