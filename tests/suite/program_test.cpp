// The program ringproof-suite: usage, exit codes, commands as kernels, case files, Ctrl-C.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "tests/cli/program.hpp"
#include "tests/suite/test_kernels.hpp"

using namespace ringproof;
using namespace ringproof::suite;
namespace fs = std::filesystem;

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
  const test::Run unknown = suite("--so " + kernel("none") + " --contract fp32 --only shft");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "--only shft: no law begins so"));
  CHECK(suite("--command 'no-such-program {in} {out}' --contract fp32").code == 2);
  CHECK(suite("--so " + kernel("none") + " --contract fp32 --only shift --count 1").code == 0);
  CHECK(suite("--command 'exit 77 {in} {out}' --contract fp32").code == 77);

  for (const auto& [wrong, says] : {std::pair{"--seed -1", "\"-1\" is no seed"},
                                    {"--seed 1e3", "is no seed"},
                                    {"--seed 18446744073709551616", "is no seed"},
                                    {"--shrink inf", "is no time from 0"},
                                    {"--shrink nan", "is no time from 0"},
                                    {"--shrink -1", "is no time from 0"},
                                    {"--timeout inf", "is no time from 0.001"},
                                    {"--timeout 0", "is no time from 0.001"},
                                    {"--count 0", "is no number of problems"},
                                    {"--count -1", "is no number of problems"}}) {
    const test::Run refused = suite("--so " + kernel("none") + " --contract fp32 " + wrong);
    INFO(wrong << ": " << refused.err);
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, says));
  }

  const std::string reference =
      "--command '" RINGPROOF_REFERENCE_PROGRAM " {in} -o {out}' --contract fp32 --count 1 ";
  const test::Run run = suite(reference + "--only shift --only causal --only key-perm");
  INFO(run.out << run.err);
  CHECK(run.code == 0);
  for (const char* quoted : {"\\\"{in}\\\" -o \\\"{out}\\\"", "'{in}' -o '{out}'"}) {
    const test::Run same = suite("--command \"" RINGPROOF_REFERENCE_PROGRAM " " +
                                 std::string(quoted) + "\" --contract fp32 --count 1 --only shift");
    INFO(same.out << same.err);
    CHECK(same.code == 0);
  }
  const test::Run died = suite(
      "--command 'kill -SEGV $$ {in} {out}' --contract fp32 --only shift "
      "--count 1 --shrink 0");
  CHECK(contains(died.out, "1 laws: 1 FAIL"));
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
  CHECK(contains(slow.out, " --timeout 0.02 "));
  const test::Run fails =
      suite("--command ': {in} {out}; echo no such device; exit 1' --contract fp32");
  CHECK(fails.code == 1);
  CHECK(contains(fails.out, "ended with exit status 1: no such device"));
  CHECK(contains(fails.out, "1 laws: 1 FAIL"));
}

TEST_CASE("a folder for failures that cannot be written is refused before a law runs") {
  const Folder folder;
  const std::string file = (folder.path / "file").string();
  std::ofstream(file) << "text";
  const auto suite = [&](const std::string& failures) {
    return test::run_ringproof("suite --so " + kernel("drops_last_key") +
                               " --contract fp32 --only no-mask --failures " + failures);
  };
  for (const std::string& wrong : {file, file + "/below", std::string("/proc/no/such")}) {
    const test::Run refused = suite(wrong);
    INFO(wrong << ": " << refused.err);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "--failures " + wrong + ": no folder to write into ("));
  }
  CHECK(test::text_of_file(file) == "text");

  const std::string deep = (folder.path / "one/two").string();
  CHECK(test::run_ringproof("suite --so " + kernel("none") +
                            " --contract fp32 --only shift --count 1 --failures " + deep)
            .code == 0);
  CHECK_FALSE(fs::exists(folder.path / "one"));  // no failure, no folder
  CHECK(suite(deep).code == 1);
  CHECK(fs::exists(deep + "/no-mask.safetensors"));
}

TEST_CASE("problems in case files are answered and judged") {
  const Folder folder;
  const std::string cases = (folder.path / "cases").string();
  REQUIRE(test::run_ringproof("gen quick -o " + cases).code == 0);
  const auto suite = [&](const std::string& so, const std::string& arguments) {
    return test::run_ringproof("suite --so " + so + " --failures " +
                               (folder.path / "failures").string() + " --cases " + arguments);
  };
  const test::Run right = suite(RINGPROOF_REFERENCE_CANDIDATE, cases + " --contract fp32-ring");
  INFO(right.out << right.err);
  CHECK(right.code == 0);
  CHECK(contains(right.out, "40 cases: 37 PASS 3 SKIPPED"));
  CHECK(contains(right.out, "do not fit F32"));  // some problems are of binary64

  const test::Run wrong = suite(kernel("drops_last_key"), cases + " --contract fp32");
  INFO(wrong.out << wrong.err);
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.out, "not supported: mask, softcap"));
  const std::string answer = (folder.path / "failures/normal.full.bf16.safetensors").string();
  CHECK(contains(wrong.out, "case: " + answer));
  CHECK(test::run_ringproof("check " + answer).code == 1);

  const test::Run nothing = test::run_ringproof("suite --command 'exit 77 {in} {out}' --cases " +
                                                cases + " --contract fp32");
  CHECK(nothing.code == 77);
  CHECK(contains(nothing.out, "SKIPPED   the kernel does not support plain attention"));

  const std::string empty = (folder.path / "empty").string();
  fs::create_directory(empty);
  CHECK(contains(suite(kernel("none"), empty + " --contract fp32").err, "no case files"));
  CHECK(suite(kernel("none"), empty + "/no.safetensors --contract fp32").code == 2);
}

TEST_CASE("the folder of temporary files may have any name, however the placeholders are quoted") {
  const Folder folder;
  const fs::path odd = folder.path / "it's $HOME \"of\" `x`\\";
  fs::create_directory(odd);
  setenv("RINGPROOF_ODD", odd.c_str(), 1);
  const std::string log = (folder.path / "log").string();
  for (const char* places :
       {"{in} -o {out}", "\\\"{in}\\\" -o \\\"{out}\\\"", "'{in}' -o '{out}'"}) {
    const std::string line =
        "TMPDIR=\"$RINGPROOF_ODD\" " RINGPROOF_SUITE_PROGRAM
        " --contract fp32 --count 1 --only shift --command \"" RINGPROOF_REFERENCE_PROGRAM " " +
        std::string(places) + "\" >" + log + " 2>&1";
    const int status = std::system(line.c_str());
    INFO(places << ": " << test::text_of_file(log));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(fs::is_empty(odd));
  }
  unsetenv("RINGPROOF_ODD");
}

namespace {

/// Starts the suite with temporary files in a folder of the test, interrupts it when `mark` is
/// there, and expects it to end soon and to leave nothing.
void interrupt(const Folder& folder, const std::vector<std::string>& words, const fs::path& mark,
               bool has_files) {
  const fs::path temporary = folder.path / "temporary";
  fs::create_directory(temporary);
  const pid_t process = fork();
  if (process == 0) {
    setenv("TMPDIR", temporary.c_str(), 1);
    setenv("RINGPROOF_MARK", mark.c_str(), 1);
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO), dup2(nothing, STDERR_FILENO);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.data()));
    pointers.push_back(nullptr);
    execv(RINGPROOF_SUITE_PROGRAM, pointers.data());
    _exit(1);
  }
  for (int n = 0; n < 500 && !fs::exists(mark); ++n) usleep(10000);
  REQUIRE(fs::exists(mark));
  CHECK(fs::is_empty(temporary) != has_files);
  const auto begin = std::chrono::steady_clock::now();
  kill(process, SIGINT);
  int status = 0;
  waitpid(process, &status, 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  CHECK(fs::is_empty(temporary));
}

}  // namespace

TEST_CASE("Ctrl-C ends the suite and its command, and leaves no temporary file") {
  const Folder folder;
  interrupt(folder,
            {"ringproof-suite", "--contract", "fp32", "--command",
             "touch \"$RINGPROOF_MARK\" {in} {out}; sleep 100"},
            folder.path / "started", true);
}

TEST_CASE("Ctrl-C ends the suite while a shared object does not return") {
  const Folder folder;
  interrupt(folder,
            {"ringproof-suite", "--contract", "fp32", "--so", kernel("hang"), "--timeout", "100",
             "--only", "grouped-heads"},
            folder.path / "started", false);
}
