// One key of a spec with its value: the checks of types and ranges, and the errors that name the
// key. Private to spec.cpp.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {

/// The words a key may hold and what they mean.
template <class Enum>
using Words = std::initializer_list<std::pair<std::string_view, Enum>>;

template <class Enum>
std::string word_of(Words<Enum> words, Enum value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return std::string(word);
  }
  return {};
}

/// One key with its value, and the errors that name it.
struct SpecEntry {
  const std::string& origin;
  std::string key;
  const nlohmann::json& value;

  [[noreturn]] void refuse(const std::string& what) const {
    std::string shown = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (shown.size() > 40) shown = shown.substr(0, 40) + "...";
    throw BadInput(origin + ": spec key " + in_quotes(key) + ": must be " + what + ", not " +
                   shown);
  }

  template <class Enum>
  Enum one_of(Words<Enum> words) const {
    std::string list;
    for (const auto& [word, meaning] : words) {
      if (value.is_string() && value.get_ref<const std::string&>() == word) return meaning;
      list.append(list.empty() ? "\"" : ", \"").append(word).append("\"");
    }
    refuse("one of " + list);
  }

  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                          : value.is_number_integer() && value.get<std::int64_t>() <= most;
    if (!fits || value.get<std::int64_t>() < least) {
      const bool bounded = most < std::numeric_limits<std::int64_t>::max();
      refuse("an integer of at least " + std::to_string(least) +
             (bounded ? " and at most " + std::to_string(most) : ""));
    }
    return value.get<std::int64_t>();
  }

  /// A JSON number, or a C99 hexadecimal number in a string, which says binary digits exactly.
  double number() const {
    constexpr auto kWhat = "a finite number or a C99 hexadecimal number in a string (\"0x1.8p-3\")";
    double result = 0;
    if (value.is_number()) {
      result = value.get<double>();
    } else if (!value.is_string() || !hexadecimal(value.get_ref<const std::string&>(), result)) {
      refuse(kWhat);
    }
    return result;  // finite: neither form can say more than binary64 holds
  }

  /// [+-]0xH.HpN, nearest binary64; not strtod, which obeys the locale and takes "inf".
  static bool hexadecimal(std::string_view text, double& result) {
    const bool minus = text.starts_with('-');
    if (minus || text.starts_with('+')) text.remove_prefix(1);
    if (!text.starts_with("0x") && !text.starts_with("0X")) return false;
    text.remove_prefix(2);
    if (text.empty() ||
        (std::isxdigit(static_cast<unsigned char>(text[0])) == 0 && text[0] != '.')) {
      return false;
    }
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, result, std::chars_format::hex);
    if (error != std::errc{} || stop != end) return false;
    if (minus) result = -result;
    return true;
  }

  void object(const std::string& what = "an object") const {
    if (!value.is_object()) refuse(what);
  }

  std::string text() const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) refuse("a string");
    return value.get<std::string>();
  }

  /// A file beside the answer: a name that cannot lead elsewhere, nor act on a terminal.
  std::string file_name() const {
    std::string file = text();
    const bool plain = std::none_of(file.begin(), file.end(), [](unsigned char c) {
      return c == '/' || c == '\\' || c < 0x20 || c == 0x7f;
    });
    if (!plain || file == "." || file == "..") refuse("a plain file name without a path");
    return file;
  }

  std::string sha256() const {
    std::string digest = text();
    for (char& c : digest) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      refuse("64 hexadecimal digits");
    }
    return digest;
  }
};

}  // namespace ringproof::oracle
