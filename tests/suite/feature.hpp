// What a problem may ask of a kernel beyond plain attention. A kernel that lacks a feature is not
// wrong: laws that need it are skipped, by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ringproof::suite {

enum class Feature : unsigned {
  lse,
  gradients,
  batches,        // B > 1
  grouped_heads,  // Hkv < H
  cross,          // Nq differs from Nk
  value_dim,      // Dv differs from D
  scale,
  causal_top_left,
  causal_bottom_right,
  window,
  mask,
  bias,
  alibi,
  softcap,
  sinks,
  key_lengths,
  packed,  // cu_seqlens_*
  documents,
  positions,
  bnhd,
  nhd,
  strides,    // rows of the inputs lie apart
  no_keys,    // Nk = 0
  empty_nan,  // rows that see nothing hold NaN
  ranks,      // partial results of a ring
  zigzag,
  striped,
  up,
  count,
};

std::string_view name(Feature);

/// A set of features.
struct Features {
  std::uint32_t bits = 0;

  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> list) {
    for (const Feature feature : list) add(feature);
  }
  static constexpr std::uint32_t bit(Feature feature) {
    return std::uint32_t{1} << static_cast<unsigned>(feature);
  }
  static constexpr Features all() {
    Features features;
    features.bits = bit(Feature::count) - 1;
    return features;
  }
  constexpr void add(Feature feature) { bits |= bit(feature); }
  constexpr void remove(Feature feature) { bits &= ~bit(feature); }
  constexpr bool has(Feature feature) const { return (bits & bit(feature)) != 0; }
  constexpr bool empty() const { return bits == 0; }
  /// Those of `wanted` that are missing here.
  constexpr Features missing(Features wanted) const {
    Features features;
    features.bits = wanted.bits & ~bits;
    return features;
  }
};

/// "causal_top_left, window"; "none".
std::string text_of(Features);

/// The features of a comma-separated list; "all" is every one. Throws oracle::BadInput.
Features parse_features(const std::string& list);

}  // namespace ringproof::suite
