#include "oracle/cli/output_file.hpp"

#include <filesystem>

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
  if (from.problem) require_other(path, *from.problem);
  if (from.spec) require_other(path, *from.spec);
}

}  // namespace ringproof::oracle::cli
