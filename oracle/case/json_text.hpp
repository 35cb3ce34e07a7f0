// JSON from strangers: what the library's parser does, and on top of it the refusals it does not
// make. A key that occurs twice in one object, nesting beyond a bound and more values than a bound
// are errors, found while reading, before memory is spent on them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ringproof::oracle {

struct JsonLimits {
  int depth = 32;              // of objects and arrays in each other
  std::size_t values = 65536;  // of all kinds, together
};

/// The value of `text`. Throws BadInput "ORIGIN: ..." naming the key or the byte.
nlohmann::json parse_json(std::string_view text, const std::string& origin, JsonLimits = {});

}  // namespace ringproof::oracle
