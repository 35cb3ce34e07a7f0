// Quoting for messages, and the restricted Damerau-Levenshtein distance behind "did you mean".
#include "oracle/case/words.hpp"

#include <algorithm>
#include <array>

namespace ringproof::oracle {
namespace {
constexpr std::size_t kLongest = 64;
}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return result + (text.size() > kShown ? "...\"" : "\"");
}

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[n]);
    const auto next = n + 1 < text.size() ? static_cast<unsigned char>(text[n + 1]) : 0;
    // U+0080 to U+009F, in UTF-8 0xC2 0x80 to 0xC2 0x9F, are control characters as well.
    const bool second_half =
        n > 0 && static_cast<unsigned char>(text[n - 1]) == 0xc2 && byte >= 0x80 && byte < 0xa0;
    const bool first_half = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (byte < 0x20 || byte == 0x7f || first_half || second_half) {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += text[n];
    }
  }
  return result;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  // row[i % 3][j]: distance of the first i letters of a to the first j of b.
  std::array<std::array<std::size_t, kLongest + 1>, 3> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& here = row[i % 3];
    const auto& above = row[(i + 2) % 3];
    here[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      here[j] = std::min({above[j] + 1, here[j - 1] + 1,
                          above[j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) here[j] = std::min(here[j], row[(i + 1) % 3][j - 2] + 1);
    }
  }
  return row[a.size() % 3][b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  return *std::min_element(known.begin(), known.end(), [&](auto left, auto right) {
    return edit_distance(word, left) < edit_distance(word, right);
  });
}

bool resembles(std::string_view word, std::string_view known) {
  const std::size_t longer = std::min(std::max(word.size(), known.size()), kLongest);
  return 2 * edit_distance(word, known) < longer;
}

}  // namespace ringproof::oracle
