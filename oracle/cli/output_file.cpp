#include "oracle/cli/output_file.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "oracle/case/error.hpp"

namespace ringproof::oracle::cli {

namespace {

void require_other(const std::string& path, const std::string& input) {
  std::error_code absent;
  if (std::filesystem::equivalent(path, input, absent)) {
    throw BadInput(path + ": is an input; what is written needs a file of its own");
  }
}

}  // namespace

void require_output(const std::string& path, const CaseArguments& from) {
  std::error_code unknown;
  const std::filesystem::file_status found = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    throw BadInput(path + ": is not a regular file");
  }
  for (const std::vector<std::string>& files : from.cases()) {
    for (const std::string& file : files) require_other(path, file);
  }
  for (const std::vector<std::string>& files : from.cases()) {
    for (const std::string& file : files) {
      const std::string problem = named_problem(file, from.spec);
      if (!problem.empty()) require_other(path, problem);
    }
  }
  if (from.problem) require_other(path, *from.problem);
  if (from.spec) require_other(path, *from.spec);
}

void write_output(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  std::remove(temporary.c_str());
  throw BadInput(path + ": cannot be written");
}

}  // namespace ringproof::oracle::cli
