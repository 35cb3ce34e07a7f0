#include "oracle/cli/output_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "oracle/case/error.hpp"

namespace ringproof::oracle::cli {

namespace {

/// The same file, or one in the folder `input`.
bool is_among(const std::string& path, const std::string& input) {
  std::error_code absent;
  if (std::filesystem::equivalent(path, input, absent)) return true;
  if (!std::filesystem::is_directory(input, absent)) return false;
  const auto file = std::filesystem::weakly_canonical(path, absent);
  const auto folder = std::filesystem::weakly_canonical(input, absent);
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

}  // namespace

void require_output(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code unknown;
  const std::filesystem::file_status found = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    throw BadInput(path + ": is not a regular file");
  }
  for (const std::string& input : inputs) {
    if (is_among(path, input)) {
      throw BadInput(path + ": is an input; what is written needs a file of its own");
    }
  }
}

void require_output(const std::string& path, const CaseArguments& from) {
  std::vector<std::string> inputs;
  for (const std::vector<std::string>& files : from.cases()) {
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  if (from.problem) inputs.push_back(*from.problem);
  if (from.spec) inputs.push_back(*from.spec);
  require_output(path, inputs);  // those on the command line first: nothing is opened for them
  for (std::string& file : inputs) file = named_problem(file, from.spec);
  std::erase(inputs, "");
  require_output(path, inputs);
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
