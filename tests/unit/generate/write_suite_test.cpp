// The folder of a suite: complete or not there, and what it holds reads back as what was generated.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "oracle/case/error.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/generate/write_suite.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;
namespace fs = std::filesystem;

/// A folder that does not exist yet, in one that vanishes with the test.
struct Place {
  Place() {
    std::string name = fs::temp_directory_path() / "ringproof_gen.XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
  }
  ~Place() { fs::remove_all(root); }
  fs::path root;
};

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a suite is a folder of problems and a list of them") {
  const Place place;
  SuiteOptions options;
  options.certify = false;
  const SuiteSummary summary = write_suite("quick", place.root / "out", options);
  CHECK(summary.refused.empty());
  CHECK(files_in(place.root) == 1);
  CHECK(files_in(place.root / "out") == static_cast<std::size_t>(summary.written) + 1);
  std::ifstream file(place.root / "out" / "suite.json");
  const auto list = nlohmann::json::parse(file);
  CHECK(list.at("cases").size() == static_cast<std::size_t>(summary.written));
  for (const auto& one : list.at("cases")) {
    const Case read = read_case(place.root / "out" / one.at("file"));
    CHECK(read.answers.empty());
    CHECK(read.problem.spec.contract.empty());
    for (const auto& flag : one.at("flags")) {
      CHECK(list.at("notes").contains(flag.get<std::string>()));
    }
  }
}

TEST_CASE("a case in memory and its file are the same problem") {
  const Place place;
  for (const Recipe& recipe : suite("vectors")) {
    INFO(recipe.name);
    const GeneratedCase generated = generate(recipe, 3);
    generated.write(place.root / "case.safetensors");
    const Case written = read_case(place.root / "case.safetensors"), made = generated.as_case();
    CHECK(written.problem.spec == made.problem.spec);
    CHECK(written.problem.position_q == made.problem.position_q);
    CHECK(written.problem.document_k == made.problem.document_k);
    CHECK(written.problem.key_length == made.problem.key_length);
    CHECK(written.problem.v.shape == made.problem.v.shape);
    const OwnedTensor& v = *generated.find("v");
    CHECK(std::memcmp(written.problem.v.data, v.bytes.data(), v.bytes.size()) == 0);
  }
}

TEST_CASE("a folder that holds something is left as it is") {
  const Place place;
  std::ofstream(place.root / "mine.txt") << "text";
  SuiteOptions options;
  CHECK_THROWS_AS(write_suite("quick", place.root, options), BadInput);
  CHECK_THROWS_AS(write_suite("quickest", place.root / "new", options), BadInput);
  CHECK(files_in(place.root) == 1);
}
