// The real tensors and the strangers' files that lie beside the repository, where they do.
#include <cstdlib>
#include <iostream>

#include "oracle/case/case_file.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

namespace fs = std::filesystem;

fs::path shared_folder() {
  const char* named = std::getenv("RINGPROOF_SHARED");
  return named != nullptr ? named : RINGPROOF_SHARED;
}

/// Safetensors files in a folder; empty, with a printed line, if it is absent.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  }
  if (absent) std::cout << "skipped: " << folder.string() << " is absent\n";
  return files;
}

void check_readable(const fs::path& folder) {
  for (const std::string& file : files_in(folder)) {
    INFO(file);
    oracle::Case result;
    CHECK_NOTHROW(result = oracle::read_case(file));
    CHECK(result.problem.head_dim > 0);
    CHECK((!result.answers.empty() || result.problem.spec.contract.empty()));
  }
}

}  // namespace

TEST_CASE("the shipped samples are read") {
  const fs::path folder = fs::path(RINGPROOF_SOURCE) / "tests" / "data";
  REQUIRE(files_in(folder).size() == 6);
  check_readable(folder);
  const auto answered =
      oracle::read_case(folder / "smollm2_l12_n256_g0.bf16.torch_flash.safetensors");
  CHECK(answered.problem.q.dtype == oracle::DType::bf16);
  CHECK(answered.problem.group() == 3);
  CHECK(answered.find(oracle::AnswerKind::lse) != nullptr);
  CHECK(answered.find(oracle::AnswerKind::dsinks) == nullptr);
  CHECK(answered.dout);
  CHECK(answered.storage.size() == 2);
}

TEST_CASE("every real tensor and every stranger's answer beside the repository is read") {
  check_readable(shared_folder() / "data" / "open");
  check_readable(shared_folder() / "data" / "sample");
  check_readable(shared_folder() / "cases" / "strangers");
  check_readable(shared_folder() / "cases" / "strangers" / "borderline");
}

TEST_CASE("every hostile file beside the repository is refused with its name and a reason") {
  for (const std::string& file : files_in(shared_folder() / "cases" / "strangers" / "hostile")) {
    // h50 names a contract that does not exist: the reader passes it on, contracts are not its
    // room.
    if (file.ends_with("h50.safetensors")) continue;
    const std::string message = refusal([&] { oracle::read_case(file); });
    CHECK(message.starts_with(file + ": "));
    CHECK(message.size() > file.size() + 10);
  }
}

}  // namespace ringproof::test
