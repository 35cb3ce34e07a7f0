// Answers of real and of strangers' kernels, if they lie beside the repository (or in
// RINGPROOF_SHARED).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

using namespace ringproof::test;

namespace {

/// The folder of shared data; empty, with a printed line, if it is not there.
std::string shared_folder() {
  const char* named = std::getenv("RINGPROOF_SHARED");
  const std::string folder = named != nullptr ? named : RINGPROOF_SOURCE "/../shared";
  if (std::filesystem::is_directory(folder)) return folder;
  std::puts(
      "skipped: no folder of shared data (RINGPROOF_SHARED, or shared beside the repository)");
  return {};
}

std::vector<std::string> answers_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    // PROBLEM.TYPE.IMPLEMENTATION.safetensors; a problem has no implementation.
    if (name.ends_with(".safetensors") && std::count(name.begin(), name.end(), '.') == 3) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("every answer of a real kernel passes under the contract it declares") {
  const std::string shared = shared_folder();
  if (shared.empty()) return;
  for (const char* set : {"/data/sample", "/data/open"}) {
    const std::vector<std::string> files = answers_in(shared + set);
    REQUIRE_FALSE(files.empty());
    for (const std::string& file : files) {
      const Run run = run_ringproof("check --only out,lse " + file);
      INFO(run.out << run.err);
      CHECK(run.code == 0);
    }
  }
}

TEST_CASE("a fast exp is refused by the LSE of a contract that does not declare it") {
  const std::string shared = shared_folder();
  if (shared.empty()) return;
  for (const std::string& file : answers_in(shared + "/data/open")) {
    if (!contains(file, ".bf16.torch_flash.")) continue;
    const Run run = run_ringproof("check --only lse --contract bf16-flash " + file);
    INFO(run.out << run.err);
    // Its rows see so many keys that the bound is wider than the error of the fast exp.
    CHECK(run.code == (contains(file, "chunk96") ? 0 : 1));
    CHECK(run_ringproof("check --only out --contract bf16-flash " + file).code == 0);
  }
}

TEST_CASE("strangers' kernels get the verdicts they deserve") {
  const std::string shared = shared_folder();
  if (shared.empty()) return;
  const std::string script = shared + "/cases/run_strangers.sh";
  if (std::system("python3 -c pass") != 0) {
    std::puts("skipped: the strangers' script needs python3");
    return;
  }
  const TemporaryFolder folder;
  const std::string line =
      script + " " RINGPROOF_PROGRAM " --forward >" + folder.path("log") + " 2>&1";
  const int status = std::system(line.c_str());
  INFO(text_of_file(folder.path("log")));
  CHECK(status == 0);
}
