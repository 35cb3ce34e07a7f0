// Any bytes as two shards: four bytes with the length of the first file, the first file, the
// second. read_shards must return a case or throw BadInput, and what it joins must be safe to walk
// through.
#include <algorithm>
#include <cstring>

#include "oracle/case/error.hpp"
#include "tests/fuzz/memory_case.hpp"

using namespace ringproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  data += sizeof length;
  size -= sizeof length;
  const std::size_t cut = std::min<std::size_t>(length, size);
  const fuzz::MemoryFile first(data, cut), second(data + cut, size - cut);
  try {
    fuzz::walk(oracle::read_shards({first.path(), second.path()}));
  } catch (const oracle::BadInput&) {
  }
  return 0;
}
