// The zoo: every preset of docs/contract.md with every variant, and kernels that conform to each.
// Presets are described here by hand, as their authors would declare them, not read from
// presets.json:
// a wrong number there shows as a false alarm here.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/emulate/numerics.hpp"

namespace ringproof::emulate {

enum class Kind { none, split, decode, ring };

/// One contract name, taken apart.
struct ZooEntry {
  std::string preset = {};
  Kind kind = Kind::none;
  std::int64_t count = 1;  // 0: the spec's `ranks` says how many
  bool lowp = false;
  std::vector<std::string> variants = {};  // without the plus sign: "block32", "asc"
  std::string fields = {};  // further fields as JSON, over the name: rescale, order of declaration

  bool has(const std::string& variant) const;
  /// The number behind a variant, e.g. 32 for "block32"; `fallback` without it.
  std::int64_t number(const std::string& variant, std::int64_t fallback) const;
  std::string name() const;
  /// What read_contract() takes: the name, or an object over it.
  std::string contract() const;
};

/// Every preset, every suffix and every variant where the preset can have it.
std::vector<ZooEntry> zoo();
/// Presets and variants the zoo must hold, for the completeness test.
std::vector<std::string> zoo_presets();
std::vector<std::string> zoo_variants();

/// A kernel of the entry, with everything the contract leaves open drawn at random. `ranks` is the
/// spec's.
Numerics draw_numerics(const ZooEntry&, std::int64_t ranks, std::mt19937_64&);

}  // namespace ringproof::emulate
