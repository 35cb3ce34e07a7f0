// From an instruction's address to its line (location.hpp), by addr2line; reports only.
#include <unistd.h>
#include <array>
#include <cstdint>

#include <cstdio>
#include <map>

#include "cuda/host/location.hpp"

extern "C" const char __executable_start;  // the linker's: where the program was loaded

namespace ringproof::cuda_host {
namespace {

/// What addr2line says of an address of this program; empty if it says nothing.
std::string line_of(unsigned long long address) {
  std::array<char, 128> command;
  std::snprintf(command.data(), command.size(), "addr2line -s -e /proc/%d/exe %#llx 2>/dev/null",
                static_cast<int>(getpid()), address);
  FILE* pipe = popen(command.data(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 256> buffer{};
  const bool read = std::fgets(buffer.data(), buffer.size(), pipe) != nullptr;
  pclose(pipe);
  const std::string line = read ? buffer.data() : "";
  return line.substr(0, line.find_first_of(" \n"));  // without "(discriminator n)"
}

}  // namespace

std::string text_of_instruction(const void* instruction) {
  if (instruction == nullptr) return "?";
  auto address = reinterpret_cast<std::uintptr_t>(instruction) - 1;  // inside the call before it
#if defined(__PIE__) || defined(__PIC__)
  address -= reinterpret_cast<std::uintptr_t>(&__executable_start);
#endif
  static thread_local std::map<std::uintptr_t, std::string> known;
  auto [entry, is_new] = known.try_emplace(address);
  if (is_new) {
    std::array<char, 32> number;
    std::snprintf(number.data(), number.size(), "address %#llx",
                  static_cast<unsigned long long>(address));
    const std::string line = line_of(address);
    entry->second = line.empty() || line[0] == '?' ? number.data() : line;
  }
  return entry->second;
}

}  // namespace ringproof::cuda_host
