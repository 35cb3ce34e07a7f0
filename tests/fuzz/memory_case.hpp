// What the fuzz targets of case files share: bytes as a file, and a walk through what was accepted.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::fuzz {

/// The bytes as a file without a place on disk.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("case", 0)) {
    while (size > 0) {
      const ssize_t written = write(descriptor_, data, size);
      if (written <= 0) break;
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// Touches what others will touch: visibility of the first and last row, the last number of each
/// answer.
inline void walk(const oracle::Case& input) {
  const oracle::Problem& problem = input.problem;
  for (const std::int64_t i : {std::int64_t{0}, problem.queries - 1}) {
    if (i < 0 || problem.batches == 0 || problem.heads == 0) continue;
    const oracle::KeyRange keys = visible_range(problem, problem.batches - 1, i);
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(keys.size()));
    visible_row(problem, problem.batches - 1, problem.heads - 1, i, keys, seen.data());
  }
  for (const oracle::Answer& answer : input.answers) {
    const auto& shape = answer.tensor.shape;
    if (shape[0] * shape[1] * shape[2] * shape[3] == 0) continue;
    answer.tensor.at(shape[0] - 1, shape[1] - 1, shape[2] - 1, shape[3] - 1);
  }
}

}  // namespace ringproof::fuzz
