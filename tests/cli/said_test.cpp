// What the program says about what it did: nothing that is asked for is left out in silence, and
// no contract is called by the name of another.
#include "tests/cli/program.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

CaseBuilder plain_case() {
  CaseBuilder builder = random_case(DType::f32);
  builder.spec = R"({"version": 1, "contract": "fp32"})";
  return builder;
}

std::string answered_case(const TemporaryFolder& folder) {
  CaseBuilder builder = plain_case();
  answer(builder, DType::f32);
  return folder.write("case.safetensors", builder.file());
}

}  // namespace

TEST_CASE("an option that names nothing, and one report asked for twice, are refused") {
  const TemporaryFolder folder;
  const std::string check = "check " + answered_case(folder);
  for (const char* option : {"--only", "--require", "--report"}) {
    const Run run = run_ringproof(check + " " + option + " ''");
    INFO(option << ": " << run.err);
    CHECK(run.code == 2);
    CHECK(contains(run.err, std::string(option) + ": names nothing"));
  }
  const Run twice = run_ringproof(check + " --report json=a,json=b");
  CHECK(twice.code == 2);
  CHECK(contains(twice.err, "json is asked for twice, in a and in b"));
}

TEST_CASE("a problem without an answer is skipped, and no row of it is counted") {
  const TemporaryFolder folder;
  const std::string problem = folder.write("problem.safetensors", random_case(DType::f32).file());
  for (const char* options : {"", " --rows 3", " --budget 9"}) {
    const Run run = run_ringproof("check " + problem + " --contract fp32" + options);
    INFO(run.out);
    CHECK(run.code == 77);
    CHECK(run.out.starts_with("SKIPPED"));
    CHECK_FALSE(contains(run.out, "  rows "));
    CHECK_FALSE(contains(run.out, "--rows 0"));
  }
}

TEST_CASE("a contract that is changed is not called by its base's name, and its line repeats") {
  const TemporaryFolder folder;
  const Run changed = run_ringproof("check " + answered_case(folder) +
                                    R"( --contract '{"base": "fp32", "p": {"u": "0x1p-1"}}')");
  CHECK(contains(changed.out, "contract  fp32, changed (7c13ac7a5f12)\n"));
  const std::string repeat = changed.out.substr(changed.out.find("ringproof check"));
  CHECK(run_ringproof(repeat.substr(10, repeat.find('\n') - 10)).out == changed.out);
}
