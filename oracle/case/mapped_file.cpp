// Opening, mapping, and the one signal a mapping can raise (mapped_file.hpp).
#include "oracle/case/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {
namespace {

/// A mapping as the signal handler sees it: memory of its own, no lock, no allocation. The begin is
/// written last and cleared first, so that a slot that is in use is complete.
struct Slot {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 256> path{};
  std::atomic<bool> taken{false};
};
std::array<Slot, 64> slots;  // mappings beyond these fall back to the plain message

void remember(const std::byte* data, std::size_t size, const std::string& path) {
  for (Slot& slot : slots) {
    if (slot.taken.exchange(true)) continue;
    slot.path.fill('\0');
    std::memcpy(slot.path.data(), path.data(), std::min(path.size(), slot.path.size() - 1));
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    slot.end = begin + size;
    slot.begin = begin;
    return;
  }
}

void forget(const std::byte* data) {
  for (Slot& slot : slots) {
    if (slot.begin != reinterpret_cast<std::uintptr_t>(data)) continue;
    slot.begin = 0;
    slot.taken = false;
    return;
  }
}

/// One line in one write, so that it does not mix with the lines of others.
void say_shrunk(const char* path) {
  std::array<char, 512> line{};
  std::size_t length = 0;
  for (const char* text : {"ringproof: ", path, ": became shorter while it was read\n"}) {
    const std::size_t size = std::strlen(text);
    std::memcpy(line.data() + length, text, size);
    length += size;
  }
  // A message that cannot be written changes nothing: the exit status says it, too.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), length);
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin;
    if (begin == 0 || address < begin || address >= slot.end) continue;
    say_shrunk(slot.path.data());
    _exit(2);
  }
  // Not a file of ours: the access repeats and has its usual effect.
  std::signal(signal, SIG_DFL);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw BadInput(path + ": " + what);
}
std::string system_message() { return std::generic_category().message(errno); }

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) refuse(path.substr(0, path.find('\0')), "no file name");
  const Descriptor file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)};
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0) refuse(path, system_message());
  if (S_ISDIR(status.st_mode)) refuse(path, "is a directory");
  if (!S_ISREG(status.st_mode)) refuse(path, "is not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) refuse(path, system_message());
  data_ = static_cast<const std::byte*>(memory);
  remember(data_, size_, path);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget(data_);
  munmap(const_cast<std::byte*>(data_), size_);
}

void guard_against_file_signals() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace ringproof::oracle
