// Any bytes as a case file: read_case must return a case or throw BadInput, and do nothing else.
// What it accepts must be safe to walk through: visibility of the first and last row, every answer.
#include "oracle/case/error.hpp"
#include "tests/fuzz/memory_case.hpp"

using namespace ringproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  try {
    fuzz::walk(oracle::read_case(file.path()));
  } catch (const oracle::BadInput&) {
  }
  return 0;
}
