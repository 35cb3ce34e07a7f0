// Any text as a spec: parse_spec must return one or throw BadInput, and what it returns must come
// through its own JSON unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "oracle/case/error.hpp"
#include "oracle/case/spec.hpp"

using namespace ringproof::oracle;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string once = to_json(parse_spec(text, "fuzz"));
    if (to_json(parse_spec(once, "fuzz")) != once) std::abort();
  } catch (const BadInput&) {
  }
  return 0;
}
