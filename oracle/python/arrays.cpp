#include "oracle/python/arrays.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/case/stored_view.hpp"

namespace ringproof::python {

namespace {

using oracle::BadInput;
using oracle::DType;

constexpr std::int64_t kMostAxes = 4;
constexpr int kHost = 1, kPinnedHost = 3;  // DLPack's device types that a processor can read

std::string place(const std::string& path, const std::string& name) {
  return path + ": tensor \"" + name + "\"";
}

/// The type of DLPack's code and width.
DType dtype_of(const nb::dlpack::dtype& type, const std::string& where) {
  using Code = nb::dlpack::dtype_code;
  struct Entry {
    Code code;
    int bits;
    DType dtype;
  };
  constexpr Entry kEntries[] = {{Code::Float, 64, DType::f64},
                                {Code::Float, 32, DType::f32},
                                {Code::Float, 16, DType::f16},
                                {Code::Bfloat, 16, DType::bf16},
                                {Code::Float8_E4M3FN, 8, DType::f8_e4m3},
                                {Code::Float8_E5M2, 8, DType::f8_e5m2},
                                {Code::Bool, 8, DType::boolean},
                                {Code::Int, 32, DType::i32},
                                {Code::Int, 64, DType::i64}};
  for (const Entry& entry : kEntries) {
    if (static_cast<int>(entry.code) == type.code && entry.bits == type.bits && type.lanes == 1) {
      return entry.dtype;
    }
  }
  throw BadInput(where + ": arrays of this type (DLPack code " + std::to_string(type.code) + ", " +
                 std::to_string(type.bits) + " bits) are not read");
}

oracle::StoredTensor stored(const nb::ndarray<nb::ro>& array, const std::string& type,
                            const std::string& where) {
  if (array.device_type() != kHost && array.device_type() != kPinnedHost) {
    throw BadInput(where + ": lies on a device; copy it to the host first");
  }
  if (array.ndim() > kMostAxes) {
    throw BadInput(where + ": has " + std::to_string(array.ndim()) + " axes, at most 4 are read");
  }
  oracle::StoredTensor result;
  if (type.empty()) {
    result.dtype = dtype_of(array.dtype(), where);
  } else if (!oracle::parse_dtype(type, result.dtype) ||
             oracle::size_of(result.dtype) != array.itemsize()) {
    throw BadInput(where + ": " + type + " is no type of this width");
  }
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    result.shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
    result.stride.push_back(array.stride(axis));
  }
  static constexpr std::byte kNothing{};  // the address of an array without elements may be null
  result.data = array.size() == 0 ? &kNothing : static_cast<const std::byte*>(array.data());
  return result;
}

/// One step of a hash over eight bytes; every input bit reaches half of the output bits.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29;
}

std::uint64_t hash_bytes(std::uint64_t hash, const std::byte* from, std::size_t count) {
  std::uint64_t word = 0;
  std::size_t n = 0;
  for (; n + sizeof word <= count; n += sizeof word) {
    std::memcpy(&word, from + n, sizeof word);
    hash = mixed(hash, word);
  }
  word = 0;
  if (n < count) std::memcpy(&word, from + n, count - n);
  return mixed(hash, word);
}

/// All elements of the axes from `axis` on.
std::uint64_t hash_axes(std::uint64_t hash, const oracle::StoredTensor& tensor,
                        const std::byte* from, std::size_t axis) {
  const std::size_t width = oracle::size_of(tensor.dtype);
  if (axis == tensor.shape.size()) return hash_bytes(hash, from, width);
  const auto count = static_cast<std::size_t>(tensor.shape[axis]);
  if (axis + 1 == tensor.shape.size() && tensor.stride[axis] == 1) {
    return hash_bytes(hash, from, count * width);
  }
  const std::int64_t step = tensor.stride[axis] * static_cast<std::int64_t>(width);
  for (std::size_t n = 0; n < count; ++n, from += step) {
    hash = hash_axes(hash, tensor, from, axis + 1);
  }
  return hash;
}

}  // namespace

Arrays::Arrays(const nb::dict& named, const std::string& path) : source_{path, {}} {
  for (const auto& [key, value] : named) {
    const auto name = std::string(nb::str(key).c_str());
    const auto pair = nb::cast<nb::tuple>(value);
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(pair[0], array)) {
      throw BadInput(place(path, name) + ": is no array that can be read");
    }
    const std::string type = nb::str(pair[1]).c_str();
    source_.tensors.emplace(name, stored(array, type, place(path, name)));
    kept_.push_back(std::move(array));
  }
  oracle::check_table(source_);
}

std::uint64_t Arrays::fingerprint() const {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : source_.tensors) {
    if (tensor.elements() > 0) hash = hash_axes(hash, tensor, tensor.data, 0);
  }
  return hash;
}

namespace {

/// A NumPy array of elements that `values` holds; the array keeps them alive.
template <class Element, class Value>
nb::object owning_array(std::vector<Value> values, const std::vector<std::size_t>& shape) {
  auto owner = std::make_unique<std::vector<Value>>(std::move(values));
  Value* data = owner->data();
  const nb::capsule capsule(owner.get(), [](void* address) noexcept {
    delete static_cast<std::vector<Value>*>(address);
  });
  owner.release();
  return nb::cast(nb::ndarray<nb::numpy, Element>(data, shape.size(), shape.data(), capsule));
}

}  // namespace

nb::object numpy_array(std::vector<double> values, const std::vector<std::int64_t>& shape) {
  return owning_array<double>(std::move(values), {shape.begin(), shape.end()});
}

nb::object numpy_bytes(std::vector<std::byte> bytes) {
  const std::vector<std::size_t> shape{bytes.size()};
  return owning_array<std::uint8_t>(std::move(bytes), shape);
}

}  // namespace ringproof::python
