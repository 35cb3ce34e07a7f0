// Python's arrays as the tensors of a case. Whatever speaks the array protocol (DLPack) or the
// buffer protocol is read where it lies, by its strides; nothing is copied. Types that such a
// protocol has no word for come as bits with the name of the type beside them.
//
// Not here: shapes and types that a case may have (oracle/case), and what Python does before it
// hands an array over (ringproof/_arrays.py).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/tensor_table.hpp"

namespace ringproof::python {

namespace nb = nanobind;

/// Tensors of one case, and what keeps their memory alive. Made, moved and destroyed under the
/// interpreter's lock; the source may be read without it.
class Arrays {
 public:
  /// `named`: {name: (array, type)}, the type a word as in case files ("BF16") or "" where the
  /// array's own counts. `path` is for messages. Throws BadInput naming the tensor.
  Arrays(const nb::dict& named, const std::string& path);

  const oracle::Source& source() const { return source_; }
  /// A number that depends on every byte of every tensor.
  std::uint64_t fingerprint() const;

 private:
  std::vector<nb::ndarray<nb::ro>> kept_;
  oracle::Source source_;
};

/// Numbers as a NumPy array that owns them.
nb::object numpy_array(std::vector<double> values, const std::vector<std::int64_t>& shape);
/// Bytes likewise, one dimension.
nb::object numpy_bytes(std::vector<std::byte> bytes);

}  // namespace ringproof::python
