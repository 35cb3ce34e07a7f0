// Strict reading of the fields of a contract (contract_fields.hpp).
#include "oracle/contract/contract_fields.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {

namespace {

/// `value` for a message: short, printable, and on one line.
std::string shown(const nlohmann::json& value) {
  return in_quotes(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
}

std::string nearest_known(std::string_view word, const std::vector<std::string_view>& known) {
  return " (nearest known: " + std::string(nearest(word, known)) + ")";
}

/// The magnitude of a hex float such as 0x1.8p-7; false if the text is anything else, or needs more
/// than 53 bits and so would be rounded in an unknown direction.
bool parse_hex_float(const std::string& text, double& value) {
  if (text == "0") return value = 0, true;
  if (text.size() < 3 || text[0] != '0' || text[1] != 'x') return false;
  const std::size_t exponent = text.find('p');
  if (exponent == std::string::npos) return false;
  int digits = 0, points = 0;
  bool nonzero = false;
  for (const char c : text.substr(2, exponent - 2)) {
    if (c == '.') {
      ++points;
    } else if (std::isxdigit(static_cast<unsigned char>(c))) {
      ++digits;
      nonzero |= c != '0';
    } else {
      return false;
    }
  }
  std::size_t first = exponent + 1;
  if (first < text.size() && (text[first] == '-' || text[first] == '+')) ++first;
  const bool plain = first < text.size() && text.size() - first <= 5 &&
                     std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
  if (digits < 1 || digits > 13 || points > 1 || !plain) return false;
  value = std::strtod(text.c_str(), nullptr);
  if (nonzero && value < std::numeric_limits<double>::min()) {
    value = std::nextafter(value, 1.0);  // a rounded subnormal may lie below the declared bound
  }
  return std::isfinite(value);
}

double number_of(const nlohmann::json& value, const std::string& path) {
  double number = 0;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= (std::uint64_t{1} << 53)) {
    return static_cast<double>(value.get<std::uint64_t>());
  }
  if (value.is_string() && parse_hex_float(value.get_ref<const std::string&>(), number)) {
    return number;
  }
  throw BadInput("contract: " + path + " is " + shown(value) +
                 ", but a number is a non-negative integer or a string such as \"0x1p-24\"");
}

double relative_error_of(const nlohmann::json& value, const std::string& path) {
  const double number = number_of(value, path);
  if (number <= 0.5) return number;
  throw BadInput("contract: " + path + " is " + shown(value) +
                 ", but a relative error is at most 0x1p-1");
}

}  // namespace

Fields::Fields(const nlohmann::json& object, std::string path,
               std::initializer_list<const char*> fields)
    : object_(object), path_(std::move(path)) {
  const std::string here = path_.empty() ? "the contract" : path_;
  if (!object.is_object()) {
    throw BadInput("contract: " + here + " is " + shown(object) + ", but an object is needed");
  }
  const std::vector<std::string_view> known(fields.begin(), fields.end());
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw BadInput("contract: unknown field " + shown(item.key()) + " in " + here +
                     nearest_known(item.key(), known));
    }
  }
  for (const char* field : fields) {
    if (!object.contains(field)) throw BadInput("contract: missing field " + this->path(field));
  }
}

std::string Fields::path(const char* field) const {
  return path_.empty() ? field : path_ + "." + field;
}

double Fields::number(const char* field) const { return number_of(json(field), path(field)); }

double Fields::relative_error(const char* field) const {
  return relative_error_of(json(field), path(field));
}

std::vector<double> Fields::relative_errors(const char* field) const {
  if (!json(field).is_array()) {
    throw BadInput("contract: " + path(field) + " is " + shown(json(field)) +
                   ", but a list of relative errors is needed");
  }
  std::vector<double> errors;
  for (const auto& value : json(field)) {
    errors.push_back(relative_error_of(value, path(field) + "[]"));
  }
  return errors;
}

std::int64_t Fields::integer(const char* field, std::int64_t least, std::int64_t most) const {
  const auto& value = json(field);
  if (value.is_number_integer()) {
    const bool fits = !value.is_number_unsigned() ||
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (fits && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most) {
      return value.get<std::int64_t>();
    }
  }
  throw BadInput("contract: " + path(field) + " is " + shown(value) + ", but an integer from " +
                 std::to_string(least) + " to " + std::to_string(most) + " is needed");
}

bool Fields::boolean(const char* field) const {
  if (json(field).is_boolean()) return json(field).get<bool>();
  throw BadInput("contract: " + path(field) + " is " + shown(json(field)) +
                 ", but true or false is needed");
}

std::string Fields::text(const char* field) const {
  if (json(field).is_string()) return json(field).get<std::string>();
  throw BadInput("contract: " + path(field) + " is " + shown(json(field)) +
                 ", but a string is needed");
}

void Fields::refuse_word(const char* field, const std::vector<std::string_view>& known) const {
  const auto& value = json(field);
  const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
  throw BadInput("contract: " + path(field) + " is " + shown(value) + nearest_known(word, known));
}

}  // namespace ringproof::oracle
