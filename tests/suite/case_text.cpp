// Case files of the suite (case_text.hpp).
#include "tests/suite/case_text.hpp"

#include <cstring>
#include <deque>

namespace ringproof::suite {
namespace {

/// The bytes of a tensor in C order.
std::vector<std::byte> closed(const oracle::StoredTensor& tensor) {
  const std::size_t width = oracle::size_of(tensor.dtype);
  std::vector<std::byte> bytes(tensor.bytes());
  for (std::int64_t n = 0; n < tensor.elements(); ++n) {
    std::int64_t rest = n, at = 0;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      at += rest % tensor.shape[axis] * tensor.stride[axis];
      rest /= tensor.shape[axis];
    }
    std::memcpy(bytes.data() + static_cast<std::size_t>(n) * width,
                tensor.data + at * static_cast<std::int64_t>(width), width);
  }
  return bytes;
}

}  // namespace

void write_source(const std::string& path, const oracle::Source& source, const oracle::Spec& spec) {
  std::deque<std::vector<std::byte>> copies;
  std::vector<oracle::NamedTensor> tensors;
  for (const auto& [name, tensor] : source.tensors) {
    const std::byte* data = tensor.data;
    if (!tensor.stride.empty()) data = copies.emplace_back(closed(tensor)).data();
    tensors.push_back({name, tensor.dtype, tensor.shape, data});
  }
  oracle::write_case(path, tensors, oracle::to_json(spec));
}

}  // namespace ringproof::suite
