#include "oracle/cli/commands.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "oracle/case/words.hpp"

namespace ringproof::oracle::cli {

void print_error(const std::string& message) {
  std::fflush(stdout);
  fmt::print(stderr, "ringproof: {}\n", printable(message));
}

}  // namespace ringproof::oracle::cli
