// The safetensors container: names, types, shapes and bytes. What the names mean is not known here.
// Layout of a file: 8 bytes length of the header (little endian), the header (a JSON object), the
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/dtype.hpp"

namespace ringproof::oracle {

/// A tensor as it is stored, possibly at an address that is not aligned.
struct StoredTensor {
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t>
      stride;  // in elements; empty: C order, the last axis fastest, as in files
  const std::byte* data = nullptr;  // never null once read, also without elements

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

using TensorMap = std::map<std::string, StoredTensor, std::less<>>;

struct SafeTensors {
  TensorMap tensors;
  std::optional<std::string> spec;  // metadata key "ringproof"
};

/// Reads the container in `file`. Every number in the header is checked against what is there; the
/// tensors must cover the data without hole or overlap, as the format demands. `path` is for
/// messages. Throws BadInput. The views point into `file`.
SafeTensors parse_safetensors(std::span<const std::byte> file, const std::string& path);

}  // namespace ringproof::oracle
