// The process around a shared object (candidate_library.hpp).
#include "tests/suite/candidate_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "oracle/case/error.hpp"
#include "tests/suite/interrupt.hpp"

namespace ringproof::suite {
namespace {

constexpr std::size_t kMemory = std::size_t{1} << 28;  // reserved; only what is used takes room

/// What the suite writes to the kernel's process; the answer to it is the kernel's result.
struct Call {
  const ringproof_problem* problem;
  ringproof_answer* answer;
};

bool read_all(int file, void* data, std::size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(file, next, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int file, const void* data, std::size_t size) {
  return write(file, data, size) == static_cast<ssize_t>(size);  // less than a pipe's atomic size
}

/// The life of the kernel's process: says with an empty text that the object is open, else why not.
[[noreturn]] void serve(const std::string& path, int from_suite, int to_suite) {
  forget_signals();
  // A crash must be the crash it is, whatever handlers the suite's own process has.
  for (const int deadly : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGTRAP, SIGXFSZ}) {
    signal(deadly, SIG_DFL);
  }
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  dup2(STDERR_FILENO, STDOUT_FILENO);  // what the kernel prints is not part of the report
  char why[512] = "";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto kernel =
      library == nullptr
          ? nullptr
          : reinterpret_cast<ringproof_candidate>(dlsym(library, RINGPROOF_CANDIDATE_V1));
  if (kernel == nullptr) std::strncpy(why, dlerror(), sizeof why - 1);
  if (!write_all(to_suite, why, sizeof why) || kernel == nullptr) _exit(0);
  Call call{};
  while (read_all(from_suite, &call, sizeof call)) {
    const int result = kernel(call.problem, call.answer);
    if (!write_all(to_suite, &result, sizeof result)) break;
  }
  _exit(0);
}

}  // namespace

Library::Library(const std::string& path, std::chrono::milliseconds limit) {
  path_ = std::filesystem::absolute(path).string();
  limit_ = limit;
  void* memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with the kernel");
  memory_ = {static_cast<std::byte*>(memory), kMemory};
  start();
}

Library::~Library() {
  stop();
  munmap(memory_.data(), memory_.size());
}

Candidate Library::candidate() {
  Candidate candidate;
  candidate.name = path_;
  candidate.context = this;
  candidate.memory = memory_;
  candidate.run = [](void* context, const ringproof_problem* problem, ringproof_answer* answer) {
    return static_cast<Library*>(context)->run(problem, answer);
  };
  return candidate;
}

void Library::start() {
  signal(SIGPIPE, SIG_IGN);  // a call to a kernel that is gone is an error of write, not the end
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe to the kernel's process");
  }
  std::fflush(nullptr);  // or a kernel that exits would write what waits to be written, too
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("no process for the kernel");
  if (process_ == 0) {
    close(down[1]), close(up[0]);
    serve(path_, down[0], up[1]);
  }
  close(down[0]), close(up[1]);
  to_kernel_ = down[1], from_kernel_ = up[0];
  char why[512] = "";
  if (!read_all(from_kernel_, why, sizeof why)) {
    stop();
    throw oracle::BadInput(path_ + ": crashed while it was opened");
  }
  if (why[0] != '\0') {
    stop();
    throw oracle::BadInput(path_ + ": is no kernel (" + why + ")");
  }
}

void Library::stop() {
  if (process_ <= 0) return;
  close(to_kernel_), close(from_kernel_);
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

void Library::report_death() {
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  close(to_kernel_), close(from_kernel_);
  process_ = -1;
  check_interrupt();  // Ctrl-C reaches the kernel's process, too
  if (WIFSIGNALED(status)) {
    throw KernelDied(std::string("the kernel crashed (") + strsignal(WTERMSIG(status)) + ")");
  }
  throw KernelDied("the kernel ended its process with exit status " +
                   std::to_string(WEXITSTATUS(status)));
}

int Library::run(const ringproof_problem* problem, ringproof_answer* answer) {
  check_interrupt();
  if (process_ <= 0) start();
  const Call call{problem, answer};
  if (!write_all(to_kernel_, &call, sizeof call)) report_death();
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit_;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waiting{from_kernel_, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0) break;
    if (ready < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    stop();
    throw KernelDied("the kernel did not return within " + std::to_string(limit_.count()) + " ms",
                     Death::hung);
  }
  int result = 0;
  if (!read_all(from_kernel_, &result, sizeof result)) report_death();
  return result;
}

}  // namespace ringproof::suite
