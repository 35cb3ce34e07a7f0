// Cases for tests: tensors by name with their values, as a map for assemble_case, as the bytes of a
// safetensors file (sound or spoilt on purpose), or on disk in a folder that goes away.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "oracle/case/assemble.hpp"
#include "oracle/case/dtype.hpp"
#include "oracle/case/error.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::test {

/// A tensor that owns its values.
struct OwnedTensor {
  oracle::DType dtype = oracle::DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// `value(n)` of the n-th element in C order.
template <class Value>
OwnedTensor make_tensor(oracle::DType dtype, std::vector<std::int64_t> shape, Value&& value) {
  OwnedTensor tensor{dtype, std::move(shape), {}};
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  tensor.bytes.resize(static_cast<std::size_t>(count) * oracle::size_of(dtype) + 1);
  for (std::int64_t n = 0; n < count; ++n) {
    oracle::encode(dtype, static_cast<double>(value(n)),
                   tensor.bytes.data() + static_cast<std::size_t>(n) * oracle::size_of(dtype));
  }
  tensor.bytes.pop_back();  // was there so that data() is never null
  return tensor;
}

inline OwnedTensor make_list(oracle::DType dtype, const std::vector<std::int64_t>& values) {
  return make_tensor(dtype, {static_cast<std::int64_t>(values.size())},
                     [&](std::int64_t n) { return values[static_cast<std::size_t>(n)]; });
}

/// Small different numbers that every float type holds.
inline OwnedTensor counted(std::vector<std::int64_t> shape,
                           oracle::DType dtype = oracle::DType::f32) {
  return make_tensor(dtype, std::move(shape), [](std::int64_t n) { return n % 7 - 3; });
}

/// Tensors in the order in which they were set, and a spec.
struct CaseBuilder {
  std::vector<std::pair<std::string, OwnedTensor>> tensors;
  std::string spec = R"({"version": 1})";

  CaseBuilder& set(const std::string& name, OwnedTensor tensor) {
    erase(name);
    tensors.emplace_back(name, std::move(tensor));
    return *this;
  }
  CaseBuilder& erase(const std::string& name) {
    std::erase_if(tensors, [&](const auto& entry) { return entry.first == name; });
    return *this;
  }
  OwnedTensor* find(const std::string& name) {
    for (auto& [known, tensor] : tensors) {
      if (known == name) return &tensor;
    }
    return nullptr;
  }

  /// Views into this builder, which must outlive them.
  oracle::Source source(const std::string& path = "memory") const {
    static const std::byte nothing{};
    oracle::Source result{path, {}};
    for (const auto& [name, tensor] : tensors) {
      const std::byte* data = tensor.bytes.empty() ? &nothing : tensor.bytes.data();
      result.tensors[name] = {tensor.dtype, tensor.shape, {}, data};
    }
    return result;
  }

  oracle::Case assemble() const {
    const oracle::Source all = source();
    oracle::check_table(all);
    return oracle::assemble_case(all, all, oracle::parse_spec(spec, "memory"));
  }

  /// The header text of a file that holds the tensors one after the other.
  std::string header() const {
    std::string text = R"({"__metadata__":{"ringproof":")" + escaped(spec) + "\"}";
    std::size_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
      text.append(",\"").append(name).append(R"(":{"dtype":")");
      text.append(oracle::name(tensor.dtype)).append(R"(","shape":[)");
      for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        if (axis > 0) text += ',';
        text += std::to_string(tensor.shape[axis]);
      }
      text += R"(],"data_offsets":[)" + std::to_string(offset) + "," +
              std::to_string(offset + tensor.bytes.size()) + "]}";
      offset += tensor.bytes.size();
    }
    return text + "}";
  }

  std::string data() const {
    std::string bytes;
    for (const auto& [name, tensor] : tensors) {
      bytes.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    return bytes;
  }

  std::string file() const { return file(header(), data()); }

  /// Length field, header, data: any of them as wrong as the caller likes.
  static std::string file(const std::string& header, const std::string& data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
  }

 private:
  static std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c == '\n' ? ' ' : c;
    }
    return result;
  }
};

/// q, k, v of a small problem in the layout bhnd, all F32.
inline CaseBuilder small_case(std::int64_t batches = 1, std::int64_t heads = 2,
                              std::int64_t kv_heads = 2, std::int64_t queries = 5,
                              std::int64_t keys = 5, std::int64_t head_dim = 4,
                              std::int64_t value_dim = 3) {
  CaseBuilder builder;
  builder.set("q", counted({batches, heads, queries, head_dim}));
  builder.set("k", counted({batches, kv_heads, keys, head_dim}));
  builder.set("v", counted({batches, kv_heads, keys, value_dim}));
  return builder;
}

/// A new folder for files of one test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ringproof-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& file) const { return (path_ / file).string(); }
  std::string write(const std::string& file, const std::string& bytes) const {
    std::ofstream(path(file), std::ios::binary) << bytes;
    return path(file);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

/// Message of the BadInput that `action` throws; fails the test if it throws none.
template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const oracle::BadInput& error) {
    return error.what();
  }
  FAIL_CHECK("no BadInput was thrown");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ringproof::test
