// Words from files in messages: made printable, and compared with the words that are known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ringproof::oracle {

/// `text` in double quotes, at most 60 bytes of it, bytes that a terminal could act on as \xNN: a
/// hostile file must not be able to write to the user's screen as it pleases.
std::string in_quotes(std::string_view text);

/// `text` with the control characters in it as \xNN, and nothing else changed: for file names.
std::string printable(std::string_view text);

/// Number of letters to insert, delete, replace or swap with a neighbour to get from one to the
/// other. Words longer than 64 letters are cut first.
std::size_t edit_distance(std::string_view, std::string_view);

/// The nearest of `known` (the first of equals). Precondition: not empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// True if `word` may be `known` misspelt: more than half of the longer one is right.
bool resembles(std::string_view word, std::string_view known);

}  // namespace ringproof::oracle
