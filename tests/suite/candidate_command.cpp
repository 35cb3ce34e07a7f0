// Files out, a command, files in (candidate_command.hpp).
#include "tests/suite/candidate_command.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/safetensors.hpp"
#include "oracle/case/words.hpp"
#include "tests/suite/case_text.hpp"
#include "tests/suite/interrupt.hpp"
#include "tests/suite/layout.hpp"

namespace ringproof::suite {
namespace {

constexpr int kNotSupported = 77, kNoSuchCommand = 127;

/// No shell reads more than itself in these characters, within quotes or without.
bool is_plain(const std::string& path) {
  constexpr std::string_view kPlain = "/._-+,:=@%";
  return std::all_of(path.begin(), path.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kPlain.find(c) != std::string_view::npos;
  });
}

/// The path as a shell reads it where `quote` is open: '\'', '"' or 0 for none.
std::string for_shell(const std::string& path, char quote) {
  if (is_plain(path)) return path;
  std::string text;
  for (const char c : path) {
    if (quote == '"') {
      if (std::string_view("\"\\$`").find(c) != std::string_view::npos) text += '\\';
      text += c;
    } else {
      text += c == '\'' ? "'\\''" : std::string(1, c);
    }
  }
  return quote == 0 ? "'" + text + "'" : text;
}

/// The line with paths in place of {in} and {out}, which may stand in quotes.
std::string with_paths(std::string_view line, const std::string& in, const std::string& out) {
  std::string text;
  char quote = 0;
  while (!line.empty()) {
    const char c = line.front();
    std::size_t read = 1;
    if (line.substr(0, 4) == "{in}") {
      read = 4, text += for_shell(in, quote);
    } else if (line.substr(0, 5) == "{out}") {
      read = 5, text += for_shell(out, quote);
    } else {
      if (c == '\\' && quote != '\'') read = 2;  // the next character is itself
      if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      }
      text += line.substr(0, read);
    }
    line.remove_prefix(std::min(read, line.size()));
  }
  return text;
}

/// Starts the line in a shell and a process group of its own; what it prints goes to `log`.
int start(const std::string& line, const std::string& log) {
  const pid_t process = fork();
  if (process < 0) throw std::runtime_error("no process for the command");
  if (process > 0) {
    setpgid(process, process);
    return process;
  }
  setpgid(0, 0);
  forget_signals();
  signal(SIGPIPE, SIG_DFL);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO), dup2(file, STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
  _exit(kNoSuchCommand);
}

void end_group(int process) {
  kill(-process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Copies one answer of the file into the place asked for.
void take(const oracle::StoredTensor& from, const std::string& name, oracle::StoredTensor to) {
  if (from.shape != to.shape) {
    throw KernelDied("the answer's " + name + " has another shape than was asked for");
  }
  auto* place = const_cast<std::byte*>(to.data);  // the answer's memory, seen read-only by Source
  for (std::int64_t n = 0; n < from.elements(); ++n) {
    const double value =
        oracle::decode(from.dtype, from.data + static_cast<std::size_t>(n) * size_of(from.dtype));
    if (!oracle::representable(to.dtype, value)) {
      throw KernelDied("the answer's " + name + " is stored as " +
                       std::string(oracle::name(from.dtype)) + " and does not fit " +
                       std::string(oracle::name(to.dtype)) + ", the type of the contract");
    }
    oracle::encode(to.dtype, value, place + static_cast<std::size_t>(n) * size_of(to.dtype));
  }
}

}  // namespace

Command::Command(std::string line, std::chrono::milliseconds limit)
    : line_(std::move(line)), limit_(limit) {
  if (line_.find("{in}") == std::string::npos || line_.find("{out}") == std::string::npos) {
    throw oracle::BadInput("--command " + line_ + ": needs {in} and {out}");
  }
  std::string pattern =
      (std::filesystem::temp_directory_path() / "ringproof-suite-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw oracle::BadInput(pattern + ": no temporary folder can be made");
  }
  folder_ = pattern;
}

Command::~Command() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Candidate Command::candidate() {
  Candidate candidate;
  candidate.name = line_;
  candidate.context = this;
  candidate.run = [](void* context, const ringproof_problem* problem, ringproof_answer* answer) {
    return static_cast<Command*>(context)->run(problem, answer);
  };
  return candidate;
}

/// The exit status; 128 + the signal as a shell has it.
int Command::wait_for(int process) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit_;
  auto pause = std::chrono::microseconds(200);
  for (int status = 0;;) {
    const int ended = waitpid(process, &status, WNOHANG);
    if (ended == process) {
      kill(-process, SIGKILL);  // whatever it left running
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    try {
      check_interrupt();
    } catch (...) {
      end_group(process);
      throw;
    }
    if (Clock::now() > end) {
      end_group(process);
      throw KernelDied("the command did not end within " + std::to_string(limit_.count()) + " ms",
                       Death::hung);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(10000));
  }
}

std::string Command::last_line() const {
  std::ifstream log(folder_ / "log");
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : ": " + last;
}

int Command::run(const ringproof_problem* problem, ringproof_answer* answer) {
  check_interrupt();
  const std::string in = folder_ / "problem.safetensors", out = folder_ / "answer.safetensors";
  std::error_code ignored;
  std::filesystem::remove(out, ignored);
  const oracle::Source source = problem_source(*problem);
  for (const auto& [name, tensor] : source.tensors) {
    if (!tensor.stride.empty()) return kNotSupported;  // files have no strides
  }
  write_source(in, source, problem_spec(*problem));
  const std::string line = with_paths(line_, in, out);
  const int status = wait_for(start(line, folder_ / "log"));
  if (status == kNotSupported) return kNotSupported;
  if (status == kNoSuchCommand) throw oracle::BadInput("--command " + line_ + last_line());
  if (status > 128) {
    throw KernelDied(std::string("the command crashed (") + strsignal(status - 128) + ")" +
                     last_line());
  }
  if (status != 0) {
    throw KernelDied("the command ended with exit status " + std::to_string(status) + last_line());
  }
  try {
    const oracle::MappedFile file(out);
    const oracle::SafeTensors tensors = oracle::parse_safetensors(file.bytes(), out);
    const oracle::Source asked = answer_source(*answer);
    for (const auto& [name, place] : asked.tensors) {
      const auto found = tensors.tensors.find(name);
      if (found != tensors.tensors.end()) take(found->second, name, place);
    }
  } catch (const oracle::BadInput& error) {
    throw KernelDied(std::string("the answer cannot be read: ") + error.what());
  }
  return 0;
}

}  // namespace ringproof::suite
