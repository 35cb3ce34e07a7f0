#include "oracle/cli/output_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

/// The file that is written: where `path` is a link to one, not the link.
std::string target_of(const std::string& path) {
  std::error_code absent;
  const auto file = std::filesystem::canonical(path, absent);
  return absent ? path : file.string();
}

std::string temporary_of(const std::string& target) {
  return target + "." + std::to_string(getpid());
}

void require_other(const std::string& path, const std::vector<std::string>& inputs) {
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

/// Makes a file beside it for a moment, as is done to write it: nothing else says for certain that
/// it can be.
void require_writable(const std::string& path) {
  const std::string temporary = temporary_of(target_of(path));
  errno = 0;
  if (!std::ofstream(temporary, std::ios::binary).is_open()) {
    throw BadInput(path + ": cannot be written (" + std::generic_category().message(errno) + ")");
  }
  std::remove(temporary.c_str());
}

}  // namespace

void require_output(const std::string& path, const std::vector<std::string>& inputs) {
  require_other(path, inputs);
  require_writable(path);
}

void require_output(const std::string& path, const CaseArguments& from) {
  std::vector<std::string> inputs;
  for (const std::vector<std::string>& files : from.cases()) {
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  if (from.problem) inputs.push_back(*from.problem);
  if (from.spec) inputs.push_back(*from.spec);
  require_other(path, inputs);  // those on the command line first: nothing is opened for them
  for (std::string& file : inputs) file = named_problem(file, from.spec);
  std::erase(inputs, "");
  require_output(path, inputs);
}

void write_output(const std::string& path, const std::string& text) {
  const std::string target = target_of(path), temporary = temporary_of(target);
  errno = 0;
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), target.c_str()) == 0) return;
  const std::string reason = std::generic_category().message(errno);
  std::remove(temporary.c_str());
  throw BadInput(path + ": cannot be written (" + reason + ")");
}

}  // namespace ringproof::oracle::cli
