// Case files from and to Python: tensors with their types and the text of the spec.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "oracle/case/tensor_table.hpp"

namespace ringproof::python {

/// Writes the tensors in C order, whatever their strides. Throws BadInput naming the file.
void write_tensors(const std::string& path, const oracle::Source&, const std::string& spec);

/// {name: (bytes as a NumPy array, type, shape)} and the text of the spec ("" where there is none).
/// Throws BadInput.
nanobind::tuple read_tensors(const std::string& path);

/// The problems of a suite, one after the other: (name, tensors as above, spec).
nanobind::tuple suite_problem(const std::string& suite, std::size_t number, std::uint64_t seed);
std::size_t suite_size(const std::string& suite);

}  // namespace ringproof::python
