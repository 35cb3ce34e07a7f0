// Reading the two forms of a test (node_test.hpp). Field numbers are those of onnx.proto.
#include "oracle/onnx/node_test.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::array kInputs{
    "Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};
constexpr std::array kOutputs{"Y", "present_key", "present_value", "qk_matmul_output"};

/// What the reader needs of ModelProto, GraphProto and the one NodeProto.
struct Model {
  std::vector<std::string> graph_inputs, graph_outputs, node_inputs, node_outputs;
  std::string op_type, domain;
  int nodes = 0;
  std::int64_t opset = 0;
  std::vector<StoredAttribute> attributes;
};

/// The default domain has two names.
bool is_default(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

/// AttributeProto: name 1, f 2, i 3, type 20 (1 FLOAT, 2 INT), ref_attr_name 21. A zero may be
/// left out where the type is given; a reference to another attribute has no value here.
StoredAttribute read_attribute(Bytes message, const std::string& origin) {
  StoredAttribute stored;
  std::int64_t type = 0;
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) stored.name = field->text();
    if (field->number == 2 && field->type == WireType::fixed32) stored.number = field->number32();
    if (field->number == 3 && field->type == WireType::varint) stored.integer = field->integer();
    if (field->number == 20) type = field->integer();
    if (field->number == 21) return {.name = stored.name, .integer = {}, .number = {}};
  }
  if (type == 1 && !stored.number) stored.number = 0.0F;
  if (type == 2 && !stored.integer) stored.integer = 0;
  if (type != 0 && type != 1) stored.number.reset();
  if (type != 0 && type != 2) stored.integer.reset();
  return stored;
}

/// NodeProto: input 1, output 2, op_type 4, attribute 5, domain 7.
void read_node(Bytes message, const std::string& origin, Model& model) {
  ++model.nodes;
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) model.node_inputs.push_back(field->text());
    if (field->number == 2) model.node_outputs.push_back(field->text());
    if (field->number == 4) model.op_type = field->text();
    if (field->number == 5) model.attributes.push_back(read_attribute(field->bytes, origin));
    if (field->number == 7) model.domain = field->text();
  }
}

/// A message whose field 1 is its name: ValueInfoProto.
std::string name_in(Bytes message, const std::string& origin) {
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) return field->text();
  }
  return {};
}

/// GraphProto: node 1, input 11, output 12.
void read_graph(Bytes message, const std::string& origin, Model& model) {
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) read_node(field->bytes, origin, model);
    if (field->number == 11) model.graph_inputs.push_back(name_in(field->bytes, origin));
    if (field->number == 12) model.graph_outputs.push_back(name_in(field->bytes, origin));
  }
}

/// OperatorSetIdProto: domain 1, version 2.
void read_opset(Bytes message, const std::string& origin, Model& model) {
  std::string domain;
  std::int64_t version = 0;
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) domain = field->text();
    if (field->number == 2) version = field->integer();
  }
  if (is_default(domain)) model.opset = version;
}

/// ModelProto: graph 7, opset_import 8.
Model read_model(Bytes message, const std::string& origin) {
  Model model;
  FieldReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 7) read_graph(field->bytes, origin, model);
    if (field->number == 8) read_opset(field->bytes, origin, model);
  }
  if (model.nodes != 1 || model.op_type != "Attention") {
    throw BadInput(origin + ": holds " + std::to_string(model.nodes) +
                   " nodes, not one Attention node");
  }
  if (!is_default(model.domain)) {
    throw BadInput(origin + ": its Attention is that of the domain " + in_quotes(model.domain) +
                   ", another operator");
  }
  return model;
}

/// Before opset 24 the operator has no seventh input.
std::size_t inputs_of(std::int64_t opset) {
  return opset < 24 ? kInputs.size() - 1 : kInputs.size();
}

/// KIND_N is the graph's N-th value; the node uses its name at one place.
void read_values(const std::string& kind, const std::vector<std::string>& graph,
                 const std::vector<std::string>& node, std::span<const char* const> formal,
                 const std::function<OnnxTensor(const std::string&)>& tensor, NodeTest& test) {
  if (node.size() > formal.size()) {
    throw BadInput(test.origin + ": the node has too many " + kind + "s");
  }
  for (std::size_t place = 0; place < node.size(); ++place) {
    if (node[place].empty()) continue;
    const auto found = std::find(graph.begin(), graph.end(), node[place]);
    if (found == graph.end()) {
      throw BadInput(test.origin + ": the node's " + kind + " " + in_quotes(node[place]) +
                     " is none of the graph");
    }
    test.tensors[formal[place]] = tensor(kind + "_" + std::to_string(found - graph.begin()));
  }
}

NodeTest read_folder(const std::filesystem::path& folder, const std::string& data_set) {
  const std::filesystem::path data = folder / data_set;
  const MappedFile model((folder / "model.onnx").string());
  NodeTest test = node_test_of(model.bytes(), folder.string(), [&](const std::string& name) {
    const std::string path = (data / (name + ".pb")).string();
    const MappedFile file(path);
    return read_tensor_proto(file.bytes(), path);
  });
  test.name = std::filesystem::absolute(folder).lexically_normal().filename().string();
  if (test.name.empty()) test.name = folder.parent_path().filename().string();
  return test;
}

/// Attributes of the extracted form: numbers of JSON.
std::vector<StoredAttribute> stored_attributes(const nlohmann::json& json) {
  std::vector<StoredAttribute> attributes;
  for (const auto& [name, value] : json.items()) {
    StoredAttribute one{.name = name, .integer = {}, .number = {}};
    if (value.is_number()) one.number = value.get<float>();
    if (value.is_number_integer()) one.integer = value.get<std::int64_t>();
    attributes.push_back(std::move(one));
  }
  return attributes;
}

/// Whether the operator has an input or output of this name in this opset.
bool is_formal(const std::string& name, std::int64_t opset) {
  const std::span inputs = std::span(kInputs).first(inputs_of(opset));
  return std::find(inputs.begin(), inputs.end(), name) != inputs.end() ||
         std::find(kOutputs.begin(), kOutputs.end(), name) != kOutputs.end();
}

NodeTest read_extracted(const std::string& path) {
  const MappedFile file(path);
  const SafeTensors stored = parse_safetensors(file.bytes(), path);
  const auto json = nlohmann::json::parse(stored.spec.value_or(""), nullptr, false);
  if (!json.is_object() || json.value("kind", nlohmann::json()) != "onnx") {
    throw BadInput(path + ": its metadata does not say that it is an ONNX node test");
  }
  NodeTest test{.name = std::filesystem::path(path).stem().string(), .origin = path};
  if (!json.contains("opset") || !json["opset"].is_number_integer() ||
      !json.contains("attributes") || !json["attributes"].is_object()) {
    throw BadInput(path + ": its metadata has no opset or no attributes");
  }
  test.opset = json["opset"].get<std::int64_t>();
  test.attributes = attention_attributes(stored_attributes(json["attributes"]), test.opset, path);
  for (const auto& [name, tensor] : stored.tensors) {
    if (!is_formal(name, test.opset)) {
      throw BadInput(path + ": tensor " + in_quotes(name) + " is none of Attention in opset " +
                     std::to_string(test.opset));
    }
    test.tensors[name] = owned(tensor);
  }
  return test;
}

}  // namespace

const OnnxTensor* NodeTest::find(const std::string& formal) const {
  const auto found = tensors.find(formal);
  return found == tensors.end() ? nullptr : &found->second;
}

NodeTest node_test_of(Bytes bytes, const std::string& origin,
                      const std::function<OnnxTensor(const std::string& file)>& tensor) {
  const Model model = read_model(bytes, origin);
  NodeTest test{.name = {}, .origin = origin, .opset = model.opset};
  test.attributes = attention_attributes(model.attributes, model.opset, origin);
  read_values("input", model.graph_inputs, model.node_inputs,
              std::span(kInputs).first(inputs_of(model.opset)), tensor, test);
  read_values("output", model.graph_outputs, model.node_outputs, kOutputs, tensor, test);
  return test;
}

NodeTest read_node_test(const std::string& path, const std::string& data_set) {
  return std::filesystem::is_directory(path) ? read_folder(path, data_set) : read_extracted(path);
}

}  // namespace ringproof::oracle
