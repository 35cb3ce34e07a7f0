// rules.json, embedded when the project is configured: tolerance rules of public projects as they
// stand in the cited files, with the inputs on which the projects apply them.
#pragma once

#include <string_view>

namespace ringproof::oracle {

extern const std::string_view rules_text;

}  // namespace ringproof::oracle
