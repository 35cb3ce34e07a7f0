#include "oracle/python/case_files.hpp"

#include <cstring>
#include <vector>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/generate/write_suite.hpp"
#include "oracle/python/arrays.hpp"

namespace ringproof::python {

namespace {

/// Elements of the axes from `axis` on, packed; returns where the next one goes.
std::byte* pack(const oracle::StoredTensor& tensor, const std::byte* from, std::size_t axis,
                std::byte* to) {
  const std::size_t width = oracle::size_of(tensor.dtype);
  if (axis == tensor.shape.size()) {
    std::memcpy(to, from, width);
    return to + width;
  }
  const std::int64_t step = tensor.stride[axis] * static_cast<std::int64_t>(width);
  for (std::int64_t n = 0; n < tensor.shape[axis]; ++n) {
    to = pack(tensor, from + n * step, axis + 1, to);
  }
  return to;
}

nb::tuple as_tuple(std::vector<std::byte> bytes, oracle::DType type,
                   const std::vector<std::int64_t>& shape) {
  nb::list sizes;
  for (const std::int64_t size : shape) sizes.append(size);
  const std::string_view word = oracle::name(type);
  return nb::make_tuple(numpy_bytes(std::move(bytes)), nb::str(word.data(), word.size()),
                        nb::tuple(sizes));
}

}  // namespace

void write_tensors(const std::string& path, const oracle::Source& source, const std::string& spec) {
  std::vector<std::vector<std::byte>> packed;
  std::vector<oracle::NamedTensor> named;
  packed.reserve(source.tensors.size());  // views into it must stay where they are
  for (const auto& [name, tensor] : source.tensors) {
    const std::byte* data = tensor.data;
    if (!tensor.stride.empty()) {
      packed.emplace_back(tensor.bytes());
      if (tensor.bytes() > 0) pack(tensor, tensor.data, 0, packed.back().data());
      data = packed.back().data();
    }
    named.push_back({name, tensor.dtype, tensor.shape, data});
  }
  oracle::write_case(path, named, spec);
}

nb::tuple read_tensors(const std::string& path) {
  const oracle::MappedFile file(path);
  const oracle::SafeTensors stored = oracle::parse_safetensors(file.bytes(), path);
  nb::dict tensors;
  for (const auto& [name, tensor] : stored.tensors) {
    tensors[name.c_str()] =
        as_tuple({tensor.data, tensor.data + tensor.bytes()}, tensor.dtype, tensor.shape);
  }
  return nb::make_tuple(tensors, stored.spec.value_or("").c_str());
}

std::size_t suite_size(const std::string& suite) { return oracle::suite(suite).size(); }

nb::tuple suite_problem(const std::string& suite, std::size_t number, std::uint64_t seed) {
  const std::vector<oracle::Recipe> recipes = oracle::suite(suite);
  const oracle::GeneratedCase made = [&] {
    const nb::gil_scoped_release without_lock;
    return oracle::certified_case(recipes.at(number), {.seed = seed, .certify = false, .walk = {}})
        .generated;
  }();
  nb::dict tensors;
  for (const oracle::OwnedTensor& tensor : made.tensors) {
    tensors[tensor.name.c_str()] = as_tuple(tensor.bytes, tensor.dtype, tensor.shape);
  }
  return nb::make_tuple(made.recipe.name.c_str(), tensors, made.spec_json().c_str());
}

}  // namespace ringproof::python
