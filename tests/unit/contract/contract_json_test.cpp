// Names, variants, fields and hashes of contracts.
#include "oracle/contract/contract.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

TEST_CASE("every published hash is reproduced") {
  const std::pair<const char*, const char*> published[] = {
      {"fp64", "309f84dabfec"},         {"fp32", "52648d2fd019"},
      {"fp32-simd", "9f75b72b422a"},    {"fp32-gpu", "341bbbc7c14f"},
      {"tf32-flash", "37d60ee6ae38"},   {"fp16-flash", "0d338cbd0673"},
      {"bf16-flash", "1fa1df457384"},   {"fp8-e4m3-flash", "b282c121f935"},
      {"fp16-eager", "c0f4d726b8d8"},   {"bf16-eager", "e258038ca5c6"},
      {"bf16-unfused", "8b1a6d7cedf2"}, {"bf16-io", "5f62fa426a24"},
      {"fp16-io", "8f916e9955a8"},      {"bf16-p16", "cbe8817c333c"},
      {"bf16-ring4", "2eb6f6876385"},   {"bf16-flash+block128+acc128", "c4b66e98f525"},
  };
  for (const auto& [name, hash] : published) {
    CAPTURE(name);
    CHECK(contract_hash(name) == hash);
    CHECK(read_contract(name, Spec{}).hash == hash);
  }
}
