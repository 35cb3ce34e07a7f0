#include "tests/vectors/vectors.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <set>

#include "oracle/generate/notes.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/truth_tensors.hpp"

namespace ringproof::vectors {
namespace {

using nlohmann::json;
using namespace oracle;

std::string hexadecimal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

json hexadecimal(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(hexadecimal(value));
  return list;
}

/// Bytes in memory order, two digits each.
std::string digits(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

json tensor_json(const OwnedTensor& tensor) {
  return {{"dtype", name(tensor.dtype)}, {"shape", tensor.shape}, {"bytes", digits(tensor.bytes)}};
}

json interval_json(const IntervalTensor& interval, const std::vector<std::int64_t>& shape) {
  return {{"shape", shape}, {"lo", hexadecimal(interval.lo)}, {"hi", hexadecimal(interval.hi)}};
}

/// The gradients by name, each with the shape of what it is the gradient of.
json gradients_json(const GeneratedCase& generated, const Case& problem, const WalkOptions& walk) {
  const Recipe& r = generated.recipe;
  const GradientTensors gradients =
      gradient_tensors(problem.problem, Upstream{problem.dout, problem.dlse, {}}, kBits, walk);
  json answers{{"dq", interval_json(gradients.dq, {r.batches, r.heads, r.queries, r.head_dim})},
               {"dk", interval_json(gradients.dk, {r.batches, r.kv_heads, r.keys, r.head_dim})},
               {"dv", interval_json(gradients.dv, {r.batches, r.kv_heads, r.keys, r.value_dim})}};
  if (const OwnedTensor* bias = generated.find("bias"); bias != nullptr) {
    answers["dbias"] = interval_json(gradients.dbias, bias->shape);
  }
  if (generated.find("sinks") != nullptr) {
    answers["dsinks"] = interval_json(gradients.dsinks, {r.heads});
  }
  return answers;
}

json test_json(const GeneratedCase& generated, int number) {
  const Case problem = generated.as_case();
  const Recipe& r = generated.recipe;
  WalkOptions walk;
  walk.threads = 1;
  const TruthTensors truth = truth_tensors(problem.problem, LseBase::e, kBits, walk);
  json answers = gradients_json(generated, problem, walk);
  answers["out"] = interval_json(truth.out, {r.batches, r.heads, r.queries, r.value_dim});
  answers["lse"] = interval_json(truth.lse, {r.batches, r.heads, r.queries});
  json tensors;
  for (const OwnedTensor& tensor : generated.tensors) tensors[tensor.name] = tensor_json(tensor);
  json spec = json::parse(generated.spec_json());
  spec.erase("about");
  return {{"tcId", number}, {"comment", r.name},  {"flags", flags_of(r)},
          {"spec", spec},   {"tensors", tensors}, {"answers", answers}};
}

/// The header readable, one line a note and one line a test.
std::string lines(const json& header, const json& notes, const json& tests) {
  std::string text = header.dump(1);
  text.resize(text.rfind('\n'));
  text += ",\n \"notes\": {";
  const char* separator = "\n";
  for (const auto& [flag, note] : notes.items()) {
    text += separator + ("  " + json(flag).dump() + ": " + note.dump());
    separator = ",\n";
  }
  text += "\n },\n \"tests\": [";
  separator = "\n";
  for (const json& test : tests) {
    text += separator + ("  " + test.dump());
    separator = ",\n";
  }
  return text + "\n ]\n}\n";
}

}  // namespace

std::vector<VectorFile> vector_files() {
  return {{"attention_bf16.json", DType::bf16},
          {"attention_fp16.json", DType::f16},
          {"attention_fp32.json", DType::f32},
          {"attention_fp64.json", DType::f64},
          {"attention_fp8_e4m3.json", DType::f8_e4m3}};
}

std::vector<GeneratedCase> vector_cases(DType dtype) {
  std::vector<GeneratedCase> cases;
  for (const Recipe& recipe : suite("vectors")) {
    if (recipe.dtype == dtype) cases.push_back(generate(recipe, kSeed));
  }
  return cases;
}

std::string vector_text(const VectorFile& file) {
  json tests = json::array();
  std::set<std::string> flags;
  for (const GeneratedCase& generated : vector_cases(file.dtype)) {
    for (const std::string& flag : flags_of(generated.recipe)) flags.insert(flag);
    tests.push_back(test_json(generated, static_cast<int>(tests.size()) + 1));
  }
  const json header{
      {"algorithm", "attention"},
      {"schema", "schema.json"},
      {"inputType", name(file.dtype)},
      {"seed", kSeed},
      {"numberOfTests", tests.size()},
      {"header",
       {"The exact answer of every element lies between lo and hi, which are binary64 numbers in "
        "hexadecimal.",
        "Bytes of tensors are in C order and little endian. Spec and tensors mean what "
        "docs/formats.md says.",
        "Logarithms are natural. Rows that see nothing hold what empty_row demands.",
        "Gradients are those of the sum of out times dout plus the sum of lse times dlse."}}};
  return lines(header, notes_of({flags.begin(), flags.end()}), tests);
}

}  // namespace ringproof::vectors
