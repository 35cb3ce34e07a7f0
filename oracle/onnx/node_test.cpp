// Reading the two forms of a test (node_test.hpp). Field numbers are those of onnx.proto.
#include "oracle/onnx/node_test.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::array kInputs{
    "Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};
constexpr std::array kOutputs{"Y", "present_key", "present_value", "qk_matmul_output"};

/// What the reader needs of ModelProto, GraphProto and the one NodeProto.
struct Model {
  std::vector<std::string> graph_inputs, graph_outputs, node_inputs, node_outputs;
  std::string op_type;
  int nodes = 0;
  std::int64_t opset = 0;
  AttentionAttributes attributes;
};

void set_attribute(AttentionAttributes& attributes, const std::string& name, std::int64_t integer,
                   float number) {
  if (name == "scale") attributes.scale = number;
  if (name == "softcap") attributes.softcap = number;
  if (name == "is_causal") attributes.is_causal = integer != 0;
  if (name == "q_num_heads") attributes.q_num_heads = integer;
  if (name == "kv_num_heads") attributes.kv_num_heads = integer;
  if (name == "left_window_size") attributes.left_window = integer;
  if (name == "right_window_size") attributes.right_window = integer;
  if (name == "softmax_precision") attributes.softmax_precision = integer;
}

/// AttributeProto: name 1, f 2, i 3.
void read_attribute(Bytes message, const std::string& origin, AttentionAttributes& attributes) {
  std::string name;
  std::int64_t integer = 0;
  float number = 0;
  WireReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) name = field->text();
    if (field->number == 2) number = field->number32();
    if (field->number == 3) integer = field->integer();
  }
  set_attribute(attributes, name, integer, number);
}

/// NodeProto: input 1, output 2, op_type 4, attribute 5.
void read_node(Bytes message, const std::string& origin, Model& model) {
  ++model.nodes;
  WireReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) model.node_inputs.push_back(field->text());
    if (field->number == 2) model.node_outputs.push_back(field->text());
    if (field->number == 4) model.op_type = field->text();
    if (field->number == 5) read_attribute(field->bytes, origin, model.attributes);
  }
}

/// A message whose field 1 is its name: ValueInfoProto.
std::string name_in(Bytes message, const std::string& origin) {
  WireReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) return field->text();
  }
  return {};
}

/// GraphProto: node 1, input 11, output 12.
void read_graph(Bytes message, const std::string& origin, Model& model) {
  WireReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) read_node(field->bytes, origin, model);
    if (field->number == 11) model.graph_inputs.push_back(name_in(field->bytes, origin));
    if (field->number == 12) model.graph_outputs.push_back(name_in(field->bytes, origin));
  }
}

/// OperatorSetIdProto: domain 1, version 2. The default domain is empty.
void read_opset(Bytes message, const std::string& origin, Model& model) {
  std::string domain;
  std::int64_t version = 0;
  WireReader reader(message, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) domain = field->text();
    if (field->number == 2) version = field->integer();
  }
  if (domain.empty() || domain == "ai.onnx") model.opset = version;
}

/// ModelProto: graph 7, opset_import 8.
Model read_model(const std::string& path) {
  const MappedFile file(path);
  Model model;
  WireReader reader(file.bytes(), path);
  while (const auto field = reader.next()) {
    if (field->number == 7) read_graph(field->bytes, path, model);
    if (field->number == 8) read_opset(field->bytes, path, model);
  }
  if (model.nodes != 1 || model.op_type != "Attention") {
    throw BadInput(path + ": holds " + std::to_string(model.nodes) +
                   " nodes, not one Attention node");
  }
  return model;
}

/// Files FOLDER/KIND_N.pb belong to the graph's N-th value; the node uses that name at one place.
template <std::size_t Count>
void read_files(const std::filesystem::path& folder, const std::string& kind,
                const std::vector<std::string>& graph, const std::vector<std::string>& node,
                const std::array<const char*, Count>& formal, NodeTest& test) {
  if (node.size() > Count) throw BadInput(test.origin + ": the node has too many " + kind + "s");
  for (std::size_t place = 0; place < node.size(); ++place) {
    if (node[place].empty()) continue;
    const auto found = std::find(graph.begin(), graph.end(), node[place]);
    if (found == graph.end()) {
      throw BadInput(test.origin + ": the node's " + kind + " \"" + node[place] +
                     "\" is none of the graph");
    }
    const std::string path =
        (folder / (kind + "_" + std::to_string(found - graph.begin()) + ".pb")).string();
    const MappedFile file(path);
    test.tensors[formal[place]] = read_tensor_proto(file.bytes(), path);
  }
}

NodeTest read_folder(const std::filesystem::path& folder, const std::string& data_set) {
  const Model model = read_model((folder / "model.onnx").string());
  NodeTest test{.name = std::filesystem::absolute(folder).lexically_normal().filename().string(),
                .origin = folder.string(),
                .opset = model.opset,
                .attributes = model.attributes};
  if (test.name.empty()) test.name = folder.parent_path().filename().string();
  const std::filesystem::path data = folder / data_set;
  read_files(data, "input", model.graph_inputs, model.node_inputs, kInputs, test);
  read_files(data, "output", model.graph_outputs, model.node_outputs, kOutputs, test);
  return test;
}

NodeTest read_extracted(const std::string& path) {
  const MappedFile file(path);
  const SafeTensors stored = parse_safetensors(file.bytes(), path);
  const auto json = nlohmann::json::parse(stored.spec.value_or(""), nullptr, false);
  if (!json.is_object() || json.value("kind", nlohmann::json()) != "onnx") {
    throw BadInput(path + ": its metadata does not say that it is an ONNX node test");
  }
  NodeTest test{.name = std::filesystem::path(path).stem().string(), .origin = path};
  try {
    test.opset = json.at("opset").get<std::int64_t>();
    for (const auto& [name, value] : json.at("attributes").items()) {
      set_attribute(test.attributes, name, value.get<std::int64_t>(), value.get<float>());
    }
  } catch (const nlohmann::json::exception&) {
    throw BadInput(path + ": opset and attributes must be numbers");
  }
  for (const auto& [name, tensor] : stored.tensors) test.tensors[name] = owned(tensor);
  return test;
}

}  // namespace

const OnnxTensor* NodeTest::find(const std::string& formal) const {
  const auto found = tensors.find(formal);
  return found == tensors.end() ? nullptr : &found->second;
}

NodeTest read_node_test(const std::string& path, const std::string& data_set) {
  return std::filesystem::is_directory(path) ? read_folder(path, data_set) : read_extracted(path);
}

}  // namespace ringproof::oracle
