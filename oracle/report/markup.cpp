#include "oracle/report/markup.hpp"

#include <cstdint>
#include <optional>

namespace ringproof::oracle {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the UTF-8 sequence that `first` opens; 0 if it opens none.
std::size_t sequence_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  if (first >= 0xF0 && first < 0xF5) return 4;
  return 0;
}

/// The character that `bytes` encode, if they are one shortest encoding.
std::optional<std::uint32_t> decode(std::string_view bytes) {
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  std::uint32_t character = first & (0x7FU >> bytes.size());
  for (const char c : bytes.substr(1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) return std::nullopt;
    character = character << 6 | (byte & 0x3FU);
  }
  if (character < kSmallest[bytes.size()]) return std::nullopt;
  return character;
}

/// The production Char of XML 1.0.
bool is_xml_character(std::uint32_t c) {
  return c == 0x9 || c == 0xA || c == 0xD || (c >= 0x20 && c <= 0xD7FF) ||
         (c >= 0xE000 && c <= 0xFFFD) || (c >= 0x10000 && c <= 0x10FFFF);
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = sequence_length(static_cast<unsigned char>(text[0]));
    const bool whole = length > 0 && length <= text.size();
    const auto character = whole ? decode(text.substr(0, length)) : std::nullopt;
    if (!character) {
      result += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view as_entity = entity(text[0]);
    if (!as_entity.empty()) {
      result += as_entity;
    } else {
      result += is_xml_character(*character) ? text.substr(0, length) : kReplacement;
    }
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace ringproof::oracle
