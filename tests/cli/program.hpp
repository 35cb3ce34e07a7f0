// The programs under test, run as a user runs them: exit code, standard output, standard error.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {

struct Run {
  int code = -1;  // exit status; -1: ended by a signal
  std::string out, err;
};

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Runs `ringproof ARGUMENTS` (a shell line) with its streams in files.
inline Run run_ringproof(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder.path("out"), err = folder.path("err");
  const std::string line =
      std::string(RINGPROOF_PROGRAM) + " " + arguments + " </dev/null >" + out + " 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of_file(out), text_of_file(err)};
}

}  // namespace ringproof::test
