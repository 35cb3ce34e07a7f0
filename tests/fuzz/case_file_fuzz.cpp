// Any bytes as a case file: read_case must return a case or throw BadInput, and do nothing else.
// What it accepts must be safe to walk through: visibility of the first and last row, every answer.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/case/error.hpp"

using namespace ringproof::oracle;

namespace {

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

void walk(const Case& input) {
  const Problem& problem = input.problem;
  for (const std::int64_t i : {std::int64_t{0}, problem.queries - 1}) {
    if (i < 0 || problem.batches == 0 || problem.heads == 0) continue;
    const KeyRange keys = visible_range(problem, problem.batches - 1, i);
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(keys.size()));
    visible_row(problem, problem.batches - 1, problem.heads - 1, i, keys, seen.data());
  }
  for (const Answer& answer : input.answers) {
    const auto& shape = answer.tensor.shape;
    if (shape[0] * shape[1] * shape[2] * shape[3] == 0) continue;
    answer.tensor.at(shape[0] - 1, shape[1] - 1, shape[2] - 1, shape[3] - 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  try {
    walk(read_case(file.path()));
  } catch (const BadInput&) {
  }
  return 0;
}
