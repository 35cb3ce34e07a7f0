// Names of features (feature.hpp).
#include "tests/suite/feature.hpp"

#include <array>
#include <vector>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::suite {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Feature::count)> kNames{
    "lse",
    "gradients",
    "batches",
    "grouped_heads",
    "cross",
    "value_dim",
    "scale",
    "causal_top_left",
    "causal_bottom_right",
    "window",
    "mask",
    "bias",
    "alibi",
    "softcap",
    "sinks",
    "key_lengths",
    "packed",
    "documents",
    "positions",
    "bnhd",
    "nhd",
    "strides",
    "no_keys",
    "empty_nan",
    "ranks",
    "zigzag",
    "striped",
    "up"};

}  // namespace

std::string_view name(Feature feature) { return kNames[static_cast<std::size_t>(feature)]; }

std::string text_of(Features features) {
  std::string text;
  for (std::size_t n = 0; n < kNames.size(); ++n) {
    if (!features.has(static_cast<Feature>(n))) continue;
    text += (text.empty() ? "" : ", ") + std::string(kNames[n]);
  }
  return text.empty() ? "none" : text;
}

Features parse_features(const std::string& list) {
  Features features;
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    const std::string word = list.substr(first, comma - first);
    first = comma + 1;
    if (word == "all") {
      features = Features::all();
      continue;
    }
    std::size_t n = 0;
    while (n < kNames.size() && kNames[n] != word) ++n;
    if (n == kNames.size()) {
      throw oracle::BadInput("feature " + oracle::in_quotes(word) + " is not known (nearest: " +
                             std::string(oracle::nearest(word, kNames)) + ")");
    }
    features.add(static_cast<Feature>(n));
  }
  return features;
}

}  // namespace ringproof::suite
