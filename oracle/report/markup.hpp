// Text inside XML and HTML. File names and error messages come from anywhere and may hold anything;
// in a report they are characters, never markup, and never bytes that a parser refuses.
#pragma once

#include <string>
#include <string_view>

namespace ringproof::oracle {

/// The text as content or as a quoted attribute value. What is no UTF-8, or a character that XML
/// 1.0 does not have, becomes U+FFFD.
std::string escaped(std::string_view text);

}  // namespace ringproof::oracle
