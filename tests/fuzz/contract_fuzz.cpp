// Any text as a contract, a name with variants or a JSON object: read_contract must return one or
// throw BadInput, and the expansion of an expansion is itself.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "oracle/case/error.hpp"
#include "oracle/contract/contract.hpp"

using namespace ringproof::oracle;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    read_contract(text, Spec{});
    const std::string once = expanded_json(text);
    if (expanded_json(once) != once) std::abort();
  } catch (const BadInput&) {
  }
  return 0;
}
