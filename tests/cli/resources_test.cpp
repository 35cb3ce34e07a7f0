// What the program costs besides time: memory that grows with the rows and not with their square,
// and a progress bar that only a person sees.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "oracle/cli/progress_bar.hpp"
#include "tests/cli/program.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

/// Exit code and peak memory in bytes of `ringproof ARGUMENTS...`, its output thrown away.
struct Cost {
  int code = -1;
  double peak = 0;
};

Cost cost_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RINGPROOF_PROGRAM);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, RINGPROOF_PROGRAM, &actions, nullptr, words.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          static_cast<double>(usage.ru_maxrss) * 1024};
}

constexpr double kProgram = 16e6;  // code, libraries, tables, stacks

/// An answered case of one head with long rows, written to a folder; returns its path.
std::string long_case(const TemporaryFolder& folder, std::int64_t rows, bool gradients) {
  CaseBuilder builder = random_case(
      DType::f32, {.heads = 1, .queries = rows, .keys = rows, .head_dim = 16, .value_dim = 16});
  builder.spec = R"({"version": 1, "contract": "fp32"})";
  builder.set("lse", make_tensor(DType::f32, {1, 1, rows}, [](std::int64_t) { return 0; }));
  if (gradients) {
    add_upstream(builder, DType::f32);
    builder.set("dk", make_tensor(DType::f32, {1, 1, rows, 16}, [](std::int64_t) { return 0; }));
    builder.set("dv", make_tensor(DType::f32, {1, 1, rows, 16}, [](std::int64_t) { return 0; }));
  }
  return folder.write("case.safetensors", builder.file());
}

}  // namespace

TEST_CASE("the memory of check grows with the keys, not with the pairs") {
  const TemporaryFolder folder;
  for (const bool gradients : {false, true}) {
    const std::int64_t rows = gradients ? 2048 : 8192;
    const std::string file = long_case(folder, rows, gradients);
    const double words = static_cast<double>(rows) * (16 + 16);  // N (D + Dv)
    for (const int threads : {1, 2}) {
      const Cost cost =
          cost_of({"check", file, "--rows", "64", "--threads", std::to_string(threads)});
      CHECK(cost.code == 1);
      const double limit = kProgram + static_cast<double>(std::filesystem::file_size(file)) +
                           threads * 12 * 8 * words;
      INFO("gradients " << gradients << ", threads " << threads << ", peak " << cost.peak
                        << ", limit " << limit);
      CHECK(cost.peak <= limit);
    }
  }
}

TEST_CASE("progress is shown on a terminal after two seconds, and never in a pipe") {
  const int standard_error = dup(STDERR_FILENO);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  dup2(pipe_ends[1], STDERR_FILENO);
  CHECK_FALSE(static_cast<bool>(cli::progress_bar()));

  const int person = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE((person >= 0 && grantpt(person) == 0 && unlockpt(person) == 0));
  const int terminal = open(ptsname(person), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  dup2(terminal, STDERR_FILENO);
  const auto bar = cli::progress_bar();
  CHECK(static_cast<bool>(bar));
  bar(1, 10);  // too early
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  bar(5, 10);
  bar(6, 10);  // too soon after the last
  bar(10, 10);
  dup2(standard_error, STDERR_FILENO);
  // A terminal hands over piece by piece: the next write may be on its way.
  std::string shown;
  pollfd ready{person, POLLIN, 0};
  while (!shown.ends_with("\r\033[K") && poll(&ready, 1, 5000) > 0) {
    char piece[1000];
    shown.append(piece, static_cast<std::size_t>(read(person, piece, sizeof piece)));
  }
  CHECK(contains(shown, "5 of 10 rows"));
  CHECK_FALSE(contains(shown, "1 of 10 rows"));
  CHECK_FALSE(contains(shown, "6 of 10 rows"));
  CHECK(shown.ends_with("\r\033[K"));
  for (const int file : {standard_error, pipe_ends[0], pipe_ends[1], terminal, person}) close(file);
}
