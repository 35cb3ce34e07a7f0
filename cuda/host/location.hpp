// Where a call stands in the sources, for reports. std::source_location is not used because
// clang 14 cannot read libstdc++'s.
#pragma once

#include <string>

namespace ringproof::cuda_host {

struct Location {
  const char* file = "";
  int line = 0;

  /// As a default argument: the place of the caller.
  static constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }

  bool operator==(const Location&) const = default;
};

/// "file.cu:12", without the folders.
inline std::string text_of(const Location& place) {
  const std::string path = place.file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(place.line);
}

/// The place of a machine instruction of this program, "file.cu:12" where the debug lines and
/// addr2line (binutils) are at hand, else its address.
std::string text_of_instruction(const void* instruction);

}  // namespace ringproof::cuda_host
