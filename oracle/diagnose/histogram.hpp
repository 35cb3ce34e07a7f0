// Refused elements counted by a number that their place has (a row, a column, a residue), and the
// sentence that follows if all of them lie in a small part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringproof::oracle {

/// A sentence about where the refused elements are: all of them lie in a part of the judged ones.
struct Finding {
  std::string words;     // "rows with i mod 16 from 8 to 15"
  double judged_share;   // of the judged elements, those that lie there
  double refused_share;  // of those that lie there, the refused ones
};

/// Judged and refused elements of every value of a key.
struct Histogram {
  std::vector<std::int64_t> judged, refused;
  void add(std::int64_t value, std::int64_t elements, std::int64_t bad) {
    if (value < 0) return;
    if (static_cast<std::size_t>(value) >= judged.size()) {
      judged.resize(static_cast<std::size_t>(value) + 1);
      refused.resize(judged.size());
    }
    judged[static_cast<std::size_t>(value)] += elements;
    refused[static_cast<std::size_t>(value)] += bad;
  }
};

/// The range of values that holds every refused element, if it is a small part of all.
std::optional<Finding> narrow(const std::string& name, const Histogram&);

/// The narrowest statements first, few of them; of equals the one that was listed first, which is
/// simpler.
void keep_narrowest(std::vector<Finding>&);

/// Sizes that tiles usually have: residues modulo these are looked at.
constexpr std::int64_t kTileSizes[] = {2, 3, 4, 8, 16, 32, 48, 64, 80, 96, 128, 192, 256, 512};

}  // namespace ringproof::oracle
