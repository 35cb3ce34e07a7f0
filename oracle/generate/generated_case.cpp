#include "oracle/generate/generated_case.hpp"

#include <algorithm>
#include <utility>

#include "oracle/case/assemble.hpp"
#include "oracle/generate/semantic_tensors.hpp"

namespace ringproof::oracle {
namespace {

/// Element n of the result is element order[n] of the argument, in an array of given shape.
std::vector<std::byte> encoded(DType type, const std::vector<double>& values,
                               const std::vector<std::int64_t>& shape, bool swap_rows_and_heads) {
  const std::size_t width = size_of(type);
  std::vector<std::byte> bytes(values.size() * width);
  const std::int64_t heads = shape[1], rows = shape[2], columns = shape[3];
  std::size_t n = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row =
            swap_rows_and_heads ? (b * rows + i) * heads + h : (b * heads + h) * rows + i;
        std::byte* to = bytes.data() + static_cast<std::size_t>(row * columns) * width;
        for (std::int64_t c = 0; c < columns; ++c, to += width) {
          encode(type, round_nearest(type, values[n++]), to);
        }
      }
    }
  }
  return bytes;
}

}  // namespace

OwnedTensor feature_tensor(std::string name, DType type, const Spec& spec,
                           const std::vector<std::int64_t>& shape,
                           const std::vector<double>& values) {
  OwnedTensor tensor{std::move(name), type, shape, {}};
  tensor.bytes = encoded(type, values, shape, spec.layout != AxisOrder::bhnd);
  if (spec.layout == AxisOrder::bnhd) tensor.shape = {shape[0], shape[2], shape[1], shape[3]};
  if (spec.layout == AxisOrder::nhd) tensor.shape = {shape[2], shape[1], shape[3]};
  return tensor;
}

OwnedTensor row_tensor(std::string name, DType type, const Spec& spec,
                       const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  OwnedTensor tensor{std::move(name), type, shape, {}};
  tensor.bytes = encoded(type, values, {shape[0], shape[1], shape[2], 1}, false);
  if (spec.layout == AxisOrder::nhd) tensor.shape = {shape[1], shape[2]};
  return tensor;
}

const OwnedTensor* GeneratedCase::find(std::string_view name) const {
  const auto place = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const OwnedTensor& one) { return one.name == name; });
  return place == tensors.end() ? nullptr : &*place;
}

std::string GeneratedCase::spec_json() const {
  nlohmann::json spec = nlohmann::json::parse(to_json(recipe.spec));
  spec["about"] = about;
  return spec.dump();
}

Case GeneratedCase::as_case(const std::vector<OwnedTensor>& answers) const {
  const std::string path = recipe.name + ".safetensors";
  Source source{path, {}};
  for (const std::vector<OwnedTensor>* list : {&tensors, &answers}) {
    for (const OwnedTensor& one : *list) {
      source.tensors[one.name] = {one.dtype, one.shape, {}, one.bytes.data()};
    }
  }
  check_table(source);
  return assemble_case(source, source, parse_spec(spec_json(), path));
}

void GeneratedCase::write(const std::string& path) const {
  std::vector<NamedTensor> named;
  for (const OwnedTensor& one : tensors) {
    named.push_back({one.name, one.dtype, one.shape, one.bytes.data()});
  }
  write_case(path, named, spec_json());
}

GeneratedCase generate(const Recipe& recipe, std::uint64_t seed) {
  GeneratedCase result{.recipe = recipe, .seed = seed, .tensors = {}, .about = {}};
  result.tensors = problem_tensors(recipe, seed);
  result.about = {{"case", recipe.name},
                  {"family", recipe.family->name},
                  {"semantics", recipe.semantics},
                  {"seed", seed},
                  {"generator", "ringproof gen"}};
  return result;
}

}  // namespace ringproof::oracle
