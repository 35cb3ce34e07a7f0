// Answers whose problem is another file: finding it, checking it, joining the two specs.
#include "oracle/case/case_file.hpp"
#include "oracle/case/sha256.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

struct TwoFiles {
  TemporaryFolder folder;
  CaseBuilder problem = small_case();
  CaseBuilder answer;

  TwoFiles() {
    problem.spec = R"({"version": 1, "causal": "top_left", "scale": 0.5})";
    answer.set("out", counted({1, 2, 5, 3})).set("dout", counted({1, 2, 5, 3}));
    answer.spec = R"({"version": 1, "contract": "fp32", "problem": "p.safetensors"})";
  }
  Case read(const CaseOptions& options = {}) {
    folder.write("p.safetensors", problem.file());
    return read_case(folder.write("a.safetensors", answer.file()), options);
  }
  std::string refused(const CaseOptions& options = {}) {
    return refusal([&] { read(options); });
  }
};

}  // namespace

TEST_CASE("an answer finds its problem beside it and takes the problem's meaning") {
  TwoFiles files;
  const Case result = files.read();
  CHECK(result.name == files.folder.path("a.safetensors"));
  CHECK(result.problem.spec.causal == Causal::top_left);
  CHECK(result.problem.spec.scale == 0.5);
  CHECK(result.problem.spec.contract == "fp32");
  CHECK(result.answers.size() == 1);
  CHECK(result.dout);
  CHECK(result.storage.size() == 2);
  CHECK(result.problem.q.at(0, 1, 4, 3) == 39 % 7 - 3);
}

TEST_CASE("--problem names the file for an answer that does not, or another one than it names") {
  TwoFiles files;
  files.answer.spec = R"({"version": 1, "contract": "fp32"})";
  CHECK(contains(files.refused(), "tensor \"q\" is missing, and neither"));
  CHECK(files.read({.problem_file = files.folder.path("p.safetensors")}).problem.queries == 5);
  files.answer.spec = R"({"version": 1, "contract": "fp32", "problem": "none.safetensors"})";
  CHECK(contains(files.refused(), "none.safetensors: No such file"));
  CHECK(files.read({.problem_file = files.folder.path("p.safetensors")}).problem.queries == 5);
}

TEST_CASE("--spec replaces the spec in the file") {
  TwoFiles files;
  const std::string spec = files.folder.write(
      "spec.json", R"({"version": 1, "contract": "bf16-io", "problem": "p.safetensors"})");
  CHECK(files.read({.spec_file = spec}).problem.spec.contract == "bf16-io");
  files.folder.write("spec.json", R"({"version": 1, "contarct": "bf16-io"})");
  CHECK(contains(files.refused({.spec_file = spec}), spec + ": unknown spec key \"contarct\""));
  files.folder.write("spec.json", "");
  CHECK(files.refused({.spec_file = spec}).starts_with(spec + ": "));
  CHECK(contains(files.refused({.spec_file = files.folder.path("none")}), "No such file"));
  CaseBuilder bare = small_case();
  const std::string header = R"({"q":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[0,4]},)"
                             R"("k":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[4,8]},)"
                             R"("v":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[8,12]}})";
  const std::string path =
      files.folder.write("bare", CaseBuilder::file(header, std::string(12, '\0')));
  CHECK(contains(refusal([&] { read_case(path); }), "no spec"));
  files.folder.write("spec.json", R"({"version": 1, "softcap": 3})");
  CHECK(read_case(path, {.spec_file = spec}).problem.spec.softcap == 3);
}

TEST_CASE("a problem file without a spec leaves all keys to the answer") {
  TwoFiles files;
  std::string header = files.problem.header();
  const std::size_t begin = header.find("\"__metadata__\""), end = header.find("\"q\"");
  header.erase(begin, end - begin);
  files.folder.write("bare.safetensors", CaseBuilder::file(header, files.problem.data()));
  files.answer.spec = R"({"version": 1, "causal": "bottom_right", "problem": "bare.safetensors"})";
  CHECK(files.read().problem.spec.causal == Causal::bottom_right);
}

TEST_CASE("the digest of the problem is checked where the answer states it") {
  TwoFiles files;
  const auto state = [&](const std::string& digest) {
    files.answer.spec = R"({"version": 1, "contract": "fp32", "problem": "p.safetensors",
                            "problem_sha256": ")" +
                        digest + "\"}";
  };
  state(sha256_hex(files.problem.file()));
  CHECK_NOTHROW(files.read());
  state(std::string(64, '0'));
  CHECK(
      contains(files.refused(), "a.safetensors: spec key \"problem_sha256\" is not the digest of"));
  CHECK(contains(files.refused({.problem_file = files.folder.path("p.safetensors")}),
                 "problem_sha256"));
}

TEST_CASE("each file holds what is its own") {
  SECTION("a tensor of the problem in the answer") {
    TwoFiles files;
    files.answer.set("mask", make_tensor(DType::boolean, {5, 5}, [](std::int64_t) { return 1; }));
    CHECK(contains(files.refused(), "a.safetensors: tensor \"mask\": belongs to the problem file"));
  }
  SECTION("an answer in the problem") {
    TwoFiles files;
    files.problem.set("lse", counted({1, 2, 5}));
    CHECK(contains(files.refused(), "p.safetensors: tensor \"lse\": an answer in a problem file"));
  }
  SECTION("upstream gradients in both") {
    TwoFiles files;
    files.problem.set("dout", counted({1, 2, 5, 3}));
    CHECK(contains(files.refused(), "tensor \"dout\": is in the problem file"));
    files.answer.erase("dout");
    CHECK(files.read().dout);
    files.problem.set("dlse", counted({1, 2, 5}));
    files.answer.erase("dlse");
    CHECK(files.read().dlse);
  }
  SECTION("a contract in the problem") {
    TwoFiles files;
    files.problem.spec = R"({"version": 1, "contract": "fp32"})";
    CHECK(contains(files.refused(), "p.safetensors: spec key \"contract\" in a problem file"));
  }
  SECTION("a key that differs") {
    TwoFiles files;
    files.answer.spec =
        R"({"version": 1, "contract": "fp32", "causal": "none", "problem": "p.safetensors"})";
    CHECK(contains(files.refused(), "a.safetensors: spec key \"causal\" differs"));
  }
  SECTION("q in the answer, too") {
    TwoFiles files;
    files.answer = small_case();
    CHECK(
        contains(files.refused({.problem_file = files.folder.path("p.safetensors")}), "--problem"));
    files.answer.spec = R"({"version": 1, "problem": "p.safetensors"})";
    CHECK(contains(files.refused(), "spec key \"problem\""));
  }
  SECTION("no q in either") {
    TwoFiles files;
    files.problem.erase("q");
    CHECK(contains(files.refused(), "p.safetensors: tensor \"q\" is missing"));
  }
  SECTION("an answer of another shape") {
    TwoFiles files;
    files.answer.set("out", counted({1, 2, 4, 3}));
    CHECK(contains(files.refused(), "a.safetensors: tensor \"out\": shape [1, 2, 4, 3]"));
  }
}

}  // namespace ringproof::test
