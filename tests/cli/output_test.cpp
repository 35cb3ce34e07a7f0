// Where the program may write.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/cli/program.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("a place that cannot be written is noticed before anything is judged") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "no case");  // what is read later says so, too
  for (const std::string& place :
       {folder.path("no/such"), text + "/below", std::string("/proc/x")}) {
    for (const std::string& arguments :
         {"check " + text + " --report json=" + place, "truth " + text + " -o " + place,
          "explain " + text + " --svg " + place}) {
      const Run run = run_ringproof(arguments);
      INFO(arguments << "\n" << run.err);
      CHECK(run.code == 2);
      CHECK(run.out.empty());
      CHECK(contains(run.err, place + ": cannot be written ("));
    }
  }
}

TEST_CASE("a report that a link points to is replaced, and not the link") {
  const TemporaryFolder folder;
  CaseBuilder builder = random_case(DType::f32);
  builder.spec = R"({"version": 1, "contract": "fp32"})";
  answer(builder, DType::f32);
  const std::string good = folder.write("good.safetensors", builder.file());
  const std::string target = folder.write("target", "old"), link = folder.path("link");
  REQUIRE(symlink(target.c_str(), link.c_str()) == 0);
  CHECK(run_ringproof("check " + good + " --report json=" + link).code == 0);
  CHECK(contains(text_of_file(target), "PASS"));
  struct stat status {};
  REQUIRE(lstat(link.c_str(), &status) == 0);
  CHECK(S_ISLNK(status.st_mode));
}

TEST_CASE("no command writes over its input, or over what is no plain file") {
  const TemporaryFolder folder;
  CaseBuilder builder = random_case(DType::f32);
  builder.spec = R"({"version": 1, "contract": "fp32"})";
  answer(builder, DType::f32);
  const std::string good = folder.write("good.safetensors", builder.file());
  set_value(builder, "out", 4, 7);
  const std::string bad = folder.write("bad.safetensors", builder.file());
  const std::string before = text_of_file(bad);
  for (const std::string& arguments :
       {"truth " + bad + " -o " + bad, "check " + bad + " --report json=" + bad,
        "explain " + bad + " --svg " + bad,
        "check " + good + " --problem " + bad + " --report json=" + bad}) {
    const Run run = run_ringproof(arguments);
    CHECK(run.code == 2);
    CHECK(contains(run.err, "is an input"));
    CHECK(text_of_file(bad) == before);
  }
  // A pipe stands for devices, too: a program that fails here must not cost anybody /dev/null.
  const std::string pipe = folder.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& arguments :
       {"check " + good + " --report json=" + pipe, "explain " + bad + " --svg " + pipe}) {
    const Run run = run_ringproof(arguments);
    CHECK(run.code == 2);
    CHECK(contains(run.err, "is not a regular file"));
  }
}
