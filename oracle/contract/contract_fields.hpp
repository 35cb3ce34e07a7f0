// Strict reading of one JSON object of a contract: exactly the known fields, exact hex floats, and
// errors that name the field and the nearest known one. Which fields there are is
// contract_json.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringproof::oracle {

/// One JSON object whose fields are exactly `fields`; `path` is its place, for messages ("" at the
/// root).
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string path, std::initializer_list<const char*> fields);

  const nlohmann::json& json(const char* field) const { return object_.at(field); }
  std::string path(const char* field) const;

  /// A JSON integer, or a string holding "0" or a hex float of at most 53 bits; never negative. A
  /// number below every binary64 subnormal is rounded up, because it is an error bound.
  double number(const char* field) const;
  /// The same, at most 1/2: a relative error.
  double relative_error(const char* field) const;
  std::vector<double> relative_errors(const char* field) const;
  std::int64_t integer(const char* field, std::int64_t least, std::int64_t most) const;
  bool boolean(const char* field) const;
  std::string text(const char* field) const;
  /// The value whose word the field holds.
  template <class Value>
  Value word(const char* field, std::initializer_list<std::pair<const char*, Value>> words) const {
    std::vector<std::string_view> known;
    for (const auto& [word, value] : words) {
      if (json(field).is_string() && json(field).get_ref<const std::string&>() == word)
        return value;
      known.push_back(word);
    }
    refuse_word(field, known);
  }

 private:
  [[noreturn]] void refuse_word(const char* field,
                                const std::vector<std::string_view>& known) const;
  const nlohmann::json& object_;
  std::string path_;
};

}  // namespace ringproof::oracle
