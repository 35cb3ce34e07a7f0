// Help and complaints (usage.hpp).
#include "reference/cli/usage.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

namespace ringproof::reference {

Usage usage_of(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) {
    const std::string program = app.get_name();
    return {2, fmt::format("{}: {} (usage; see {} --help)\n", program, error.what(), program)};
  }
  std::ostringstream help;
  app.exit(error, help, help);
  return {0, help.str()};
}

int print(const Usage& usage) {
  fmt::print(usage.status == 0 ? stdout : stderr, "{}", usage.text);
  return usage.status;
}

}  // namespace ringproof::reference
