// html_style.css, embedded when the project is configured: colours and layout of the page.
#pragma once

#include <string_view>

namespace ringproof::oracle {

extern const std::string_view html_style;

}  // namespace ringproof::oracle
