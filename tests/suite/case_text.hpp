// Problems and answers of the suite as case files.
#pragma once

#include <string>

#include "oracle/case/tensor_table.hpp"

namespace ringproof::suite {

/// Writes the tensors of a source (gaps between rows closed) and the spec.
void write_source(const std::string& path, const oracle::Source&, const oracle::Spec&);

}  // namespace ringproof::suite
