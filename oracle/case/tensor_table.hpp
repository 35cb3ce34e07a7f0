// The table of tensors a case may hold: which names there are, which types each may have, and
// whether a tensor states the problem or answers it. Shapes are in assemble.cpp.
#pragma once

#include <string>

#include "oracle/case/case_file.hpp"
#include "oracle/case/safetensors.hpp"

namespace ringproof::oracle {

/// The tensors of one file, and its name for messages.
struct Source {
  std::string path;
  TensorMap tensors;

  const StoredTensor* find(std::string_view name) const {
    const auto place = tensors.find(name);
    return place == tensors.end() ? nullptr : &place->second;
  }
};

/// Throws BadInput "PATH: tensor "NAME": what".
[[noreturn]] void refuse_tensor(const Source&, std::string_view name, const std::string& what);

enum class TensorRole { problem, upstream, answer };

/// Role of a name in the table. Precondition: check_table accepted it.
TensorRole role_of(std::string_view name);

/// Refuses names and types that are not in the table, and reserved names, by name.
void check_table(const Source&);

}  // namespace ringproof::oracle
