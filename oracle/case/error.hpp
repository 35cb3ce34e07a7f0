// The one exception of the judge: bad input or usage (exit code 2).
#pragma once

#include <stdexcept>
#include <string>

namespace ringproof::oracle {

/// What is wrong with the input, where, and in which file: "FILE: what (where)".
struct BadInput : std::runtime_error {
  explicit BadInput(const std::string& what) : std::runtime_error(what) {}
};

}  // namespace ringproof::oracle
