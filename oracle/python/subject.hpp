// What a call of the package is about: one case, of arrays or in a file.
#pragma once

#include <optional>
#include <string>

#include "oracle/case/case_file.hpp"
#include "oracle/judge/check.hpp"
#include "oracle/python/arrays.hpp"

namespace ringproof::python {

struct Subject {
  std::optional<Arrays> arrays;  // none: the case was read from a file
  oracle::Case input;            // points into the arrays, or holds the file

  /// `tensors`: a dictionary as Arrays takes it, or the path of a case file (then `spec` is the
  /// file's own). Throws BadInput.
  Subject(const nb::object& tensors, const std::string& spec, const std::string& name);

  /// The text of `contract`, else of the contract that the case names. Throws BadInput for neither.
  std::string contract_text(const std::string& contract) const;
};

/// As many threads as the machine has for None, else the number given, within the program's limits.
/// Throws BadInput.
int thread_count(nb::handle);

/// The options of check() from their names in Python. Throws BadInput.
oracle::CheckOptions check_options(const nb::dict& options);

}  // namespace ringproof::python
