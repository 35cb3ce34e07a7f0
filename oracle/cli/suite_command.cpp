// `ringproof suite ...`: hands its arguments to the program `ringproof-suite`. The suite links test
// libraries and knows nothing that the judge needs, so it is a program of its own; this is a door.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/commands.hpp"

namespace ringproof::oracle::cli {

namespace {

constexpr const char* kProgram = "ringproof-suite";

/// Does not return unless the program cannot be started: first the one beside this program, then
/// any on the search path.
[[noreturn]] void become(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{kProgram};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::error_code unknown;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string beside = (self.parent_path() / kProgram).string();
  if (!unknown) execv(beside.c_str(), pointers.data());
  execvp(kProgram, pointers.data());
  throw BadInput(std::string("suite: the program ") + kProgram + " cannot be started (" +
                 std::strerror(errno) + "); it is built together with the tests");
}

}  // namespace

void add_suite(CLI::App& program, Command& chosen) {
  CLI::App& app = *program.add_subcommand("suite", "run the property suite on a kernel");
  app.prefix_command();
  app.set_help_flag();  // --help is the suite's
  app.callback([&app, &chosen] { chosen = [&app]() -> int { become(app.remaining()); }; });
}

}  // namespace ringproof::oracle::cli
