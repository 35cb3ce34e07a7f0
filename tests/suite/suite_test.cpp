// The suite on kernels that are right, wrong, dead, slow or rude, as a library and as a program.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "oracle/case/error.hpp"
#include "oracle/judge/check.hpp"
#include "tests/cli/program.hpp"
#include "tests/suite/candidate_library.hpp"
#include "tests/suite/probe.hpp"
#include "tests/suite/reference_candidate.hpp"
#include "tests/suite/suite.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof;
using namespace ringproof::suite;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone when the test ends.
struct Folder {
  fs::path path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "ringproof-suite-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
};

std::string kernel(const std::string& fault) {
  return std::string(RINGPROOF_KERNELS) + "/kernel_" + fault + ".so";
}

struct Ran {
  Outcome outcome;
  std::string text;
  fs::path failures;
  std::string why() const {  // of the first broken law
    for (const LawResult& law : outcome.laws) {
      if (law.word == Word::fail) return law.reason;
    }
    return "";
  }
  int count(Word word) const {
    int laws = 0;
    for (const LawResult& law : outcome.laws) laws += law.word == word ? 1 : 0;
    return laws;
  }
};

Ran run_kernel(const std::string& path, const Folder& folder, const std::string& contract,
               SuiteOptions options = {}) {
  Library library(path, std::chrono::milliseconds(300));
  Trial trial(library.candidate(), contract);
  REQUIRE(probe(trial));
  options.folder = folder.path / "failures";
  options.shrink = std::chrono::milliseconds(2000);
  std::ostringstream stream;
  Ran ran;
  ran.outcome = run_suite(trial, options, stream);
  ran.text = stream.str();
  ran.failures = options.folder;
  return ran;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every law has a name of its own, a sentence, and a function") {
  std::set<std::string_view> ids;
  for (const Law& law : all_laws()) {
    INFO(law.id);
    CHECK(ids.insert(law.id).second);
    CHECK(law.sentence.size() > 10);
    CHECK(law.holds != nullptr);
  }
  CHECK(ids.size() > 90);
}

TEST_CASE("the scalar tier passes every law, forward and backward") {
  const Folder folder;
  const Ran ran = run_kernel(RINGPROOF_REFERENCE_CANDIDATE, folder, "fp32-ring", {.count = 2});
  INFO(ran.text);
  CHECK(ran.count(Word::fail) == 0);
  CHECK(ran.count(Word::skipped) == 0);
  CHECK(ran.outcome.laws.size() == all_laws().size());
}

TEST_CASE("a plain C kernel passes what it supports; the rest is skipped by name") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("none"), folder, "fp32");
  INFO(ran.text);
  CHECK(ran.count(Word::fail) == 0);
  CHECK(ran.count(Word::pass) > 20);
  CHECK(contains(ran.text, "needs alibi"));
  CHECK(contains(ran.text, "not supported: "));
  CHECK(exit_code(ran.outcome) == 0);
}

TEST_CASE("a kernel without a required feature fails") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("none"), folder, "fp32",
                             {.only = {"no-mask"}, .require = parse_features("lse,sinks")});
  CHECK(exit_code(ran.outcome) == 1);
  CHECK(contains(ran.text, "required, but not supported: sinks"));
  CHECK_THROWS_AS(parse_features("sniks"), oracle::BadInput);
}

TEST_CASE("a kernel that crashes, exits or hangs is reported, and the suite goes on") {
  const Folder folder;
  for (const auto& [fault, words] :
       {std::pair{"crash", "the kernel crashed (Aborted)"},
        std::pair{"exit", "the kernel ended its process with exit status 0"},
        std::pair{"hang", "the kernel did not return within 300 ms"}}) {
    const Ran ran = run_kernel(kernel(fault), folder, "fp32",
                               {.only = {"no-mask", "grouped-heads", "determinism"}});
    INFO(fault << "\n" << ran.text);
    CHECK(contains(ran.why(), words));
    CHECK(ran.outcome.laws.size() >= 3);
  }
}

TEST_CASE("a kernel that writes where it should not, or not where it should, breaks a law") {
  const Folder folder;
  for (const auto& [fault, words] :
       {std::pair{"writes_input", "wrote into its input k"},
        std::pair{"writes_beside", "wrote beside its output out"},
        std::pair{"leaves_a_row", "refused"}, std::pair{"random", "differs"}}) {
    const Ran ran = run_kernel(kernel(fault), folder, "fp32",
                               {.count = 6, .only = {"determinism", "written", "inputs-stay"}});
    INFO(fault << "\n" << ran.text);
    CHECK(contains(ran.text, words));
    CHECK(exit_code(ran.outcome) == 1);
  }
}

TEST_CASE("a broken law comes with the smallest case, a file the judge refuses, and a command") {
  const Folder folder;
  const Ran ran =
      run_kernel(kernel("drops_last_key"), folder, "fp32",
                 {.count = 5, .only = {"no-mask"}, .command = "ringproof suite --so k"});
  INFO(ran.text);
  REQUIRE(exit_code(ran.outcome) == 1);
  // The fault needs 4 queries, 4 keys and 2 heads; nothing smaller breaks the law.
  CHECK(contains(ran.why(), "problem: B 1 H 2 "));
  CHECK(contains(ran.why(), "Nq 4 Nk 4 "));
  CHECK(contains(ran.why(), "repeat: ringproof suite --so k --only no-mask --seed "));
  const oracle::Case one = oracle::read_case(ran.failures / "no-mask.safetensors");
  const oracle::Contract contract =
      oracle::read_contract(one.problem.spec.contract, one.problem.spec);
  CHECK(oracle::check(one, contract, {}).verdict == oracle::Verdict::fail);
}

TEST_CASE("numbers shrink to small integers") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("drops_last_key"), folder, "fp32",
                             {.count = 8, .only = {"every-semantics"}});
  INFO(ran.text);
  REQUIRE(exit_code(ran.outcome) == 1);
  const oracle::Case one = oracle::read_case(ran.failures / "every-semantics.safetensors");
  for (const oracle::Tensor& tensor : {one.problem.q, one.problem.k, one.problem.v}) {
    for (Index n = 0; n < tensor.shape[2]; ++n) {
      const double value = tensor.at(0, 0, n, 0);
      CHECK((value == std::floor(value) && std::abs(value) <= 2));
    }
  }
}

TEST_CASE("a C++ callable is a kernel like others") {
  Candidate candidate;
  candidate.name = "in this process";
  candidate.run = [](void* context, const ringproof_problem* problem, ringproof_answer* answer) {
    ++*static_cast<int*>(context);
    if (problem->dout.data != nullptr) return 1;
    Call<float>(*problem).answer(*answer);
    return 0;
  };
  int calls = 0;
  candidate.context = &calls;
  Trial trial(candidate, "fp32");
  REQUIRE(probe(trial));
  std::ostringstream stream;
  const Outcome outcome = run_suite(trial, {.only = {"shift", "poison", "gradients"}}, stream);
  INFO(stream.str());
  CHECK(exit_code(outcome) == 0);
  CHECK(calls == trial.calls());
  CHECK(contains(stream.str(), "needs gradients"));
}

TEST_CASE("a file that is no kernel is bad input") {
  CHECK_THROWS_AS(Library("no/such/file.so", std::chrono::seconds(1)), oracle::BadInput);
  CHECK_THROWS_AS(Library(RINGPROOF_SUITE_PROGRAM, std::chrono::seconds(1)), oracle::BadInput);
}

TEST_CASE("the program: laws, usage, a command as kernel, and exit codes") {
  const Folder folder;
  const auto suite = [&](const std::string& arguments) {
    return test::run_ringproof("suite " + arguments + " --failures " +
                               (folder.path / "failures").string());
  };
  CHECK(contains(suite("--list").out, "key-permutation"));
  CHECK(suite("").code == 2);
  CHECK(contains(suite("--so " + kernel("none")).err, "no contract is given"));
  CHECK(suite("--so " + kernel("none") + " --contract fp33").code == 2);
  CHECK(suite("--command 'true {in}' --contract fp32").code == 2);
  CHECK(suite("--command 'no-such-program {in} {out}' --contract fp32").code == 2);
  CHECK(suite("--so " + kernel("none") + " --contract fp32 --only shift --count 1").code == 0);
  CHECK(suite("--command 'exit 77 {in} {out}' --contract fp32").code == 77);

  const std::string reference =
      "--command '" RINGPROOF_REFERENCE_PROGRAM " {in} -o {out}' --contract fp32 --count 1 ";
  const test::Run run = suite(reference + "--only shift --only causal --only key-perm");
  INFO(run.out << run.err);
  CHECK(run.code == 0);
  const test::Run died = suite(
      "--command 'kill -SEGV $$ {in} {out}' --contract fp32 --only shift "
      "--count 1 --shrink 0");
  CHECK(died.code == 1);
  CHECK(contains(died.out, "the command crashed (Segmentation fault)"));
  const test::Run silent = suite(
      "--command 'true {in} {out}' --contract fp32 --only shift "
      "--count 1 --shrink 0");
  CHECK(silent.code == 1);
  CHECK(contains(silent.out, "the answer cannot be read"));
  const test::Run slow = suite(
      "--command ': {in} {out}; sleep 100' --contract fp32 --only shift "
      "--count 1 --shrink 0 --timeout 0.02");
  CHECK(contains(slow.out, "the command did not end within 20 ms"));
}

TEST_CASE("Ctrl-C ends the suite and its command, and leaves no temporary file") {
  const Folder folder;
  const std::string mark = (folder.path / "started").string();
  const std::string line = "touch " + mark + " {in} {out}; sleep 100";
  const pid_t process = fork();
  if (process == 0) {
    fs::create_directory(folder.path / "temporary");
    setenv("TMPDIR", (folder.path / "temporary").c_str(), 1);
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO), dup2(nothing, STDERR_FILENO);
    execl(RINGPROOF_SUITE_PROGRAM, "ringproof-suite", "--contract", "fp32", "--command",
          line.c_str(), static_cast<char*>(nullptr));
    _exit(1);
  }
  for (int n = 0; n < 500 && !fs::exists(mark); ++n) usleep(10000);
  REQUIRE(fs::exists(mark));
  CHECK_FALSE(fs::is_empty(folder.path / "temporary"));
  kill(process, SIGINT);
  int status = 0;
  waitpid(process, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  CHECK(fs::is_empty(folder.path / "temporary"));
}
