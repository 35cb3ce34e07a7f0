// The vector files are what the generator writes, bit for bit, and a second truth that shares no
// code with the judge finds every answer inside its interval.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/vectors/second_truth.hpp"
#include "tests/vectors/vectors.hpp"

namespace {

using namespace ringproof;
using nlohmann::json;
using second_truth::Real;

std::string text_of(const std::string& name) {
  std::ifstream file("tests/vectors/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::byte> bytes_of(const std::string& digits) {
  std::vector<std::byte> bytes;
  for (std::size_t n = 0; n < digits.size(); n += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(n, 2), nullptr, 16)));
  }
  return bytes;
}

second_truth::Input input_of(const json& test) {
  second_truth::Input input{test.at("spec"), {}};
  for (const auto& [name, tensor] : test.at("tensors").items()) {
    input.tensors[name] =
        second_truth::decode(tensor.at("dtype"), tensor.at("shape"), bytes_of(tensor.at("bytes")));
  }
  return input;
}

double number(const json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); }

/// "" or what is wrong with an element that should lie in its interval.
std::string outside(const Real& value, const json& answer, std::size_t n) {
  const double lo = number(answer.at("lo").at(n)), hi = number(answer.at("hi").at(n));
  if (Real(lo) <= value && value <= Real(hi)) return "";
  std::ostringstream text;
  text.precision(40);
  text << "element " << n << ": " << value << " is not in [" << lo << ", " << hi << "]";
  return text.str();
}

/// Every element of a tensor in its interval.
void compare_all(const std::vector<Real>& values, const json& answer) {
  REQUIRE(values.size() == answer.at("lo").size());
  for (std::size_t n = 0; n < values.size(); ++n) CHECK(outside(values[n], answer, n) == "");
}

/// The gradient of a bias that broadcasts is a sum over the axes along which it does.
std::vector<Real> summed(const std::vector<Real>& full, const std::array<std::size_t, 4>& sizes,
                         const std::vector<std::size_t>& stored) {
  std::vector<Real> sums(stored[0] * stored[1] * stored[2] * stored[3]);
  std::size_t n = 0;
  for (std::size_t b = 0; b < sizes[0]; ++b) {
    for (std::size_t h = 0; h < sizes[1]; ++h) {
      for (std::size_t i = 0; i < sizes[2]; ++i) {
        for (std::size_t j = 0; j < sizes[3]; ++j) {
          const auto at = [&](std::size_t axis, std::size_t index) {
            return stored[axis] == 1 ? 0 : index;
          };
          const std::size_t place =
              ((at(0, b) * stored[1] + at(1, h)) * stored[2] + at(2, i)) * stored[3] + at(3, j);
          sums[place] += full[n++];
        }
      }
    }
  }
  return sums;
}

void compare_gradients(const second_truth::Answers& answers, const json& expected,
                       const json& tensors) {
  compare_all(answers.dq, expected.at("dq"));
  compare_all(answers.dk, expected.at("dk"));
  compare_all(answers.dv, expected.at("dv"));
  if (expected.contains("dsinks")) compare_all(answers.dsinks, expected.at("dsinks"));
  if (!expected.contains("dbias")) return;
  const std::vector<std::size_t> out = expected.at("out").at("shape");
  const std::size_t keys = expected.at("dk").at("shape").at(2);
  compare_all(summed(answers.dbias, {out[0], out[1], out[2], keys}, tensors.at("bias").at("shape")),
              expected.at("dbias"));
}

/// What in `value` is not as the schema says; "" if nothing. Knows the words that schema.json uses.
std::string violation(const json& value, const json& schema, const json& root) {
  if (schema.contains("$ref")) {
    const std::string name = schema.at("$ref");
    return violation(value, root.at("$defs").at(name.substr(name.rfind('/') + 1)), root);
  }
  if (schema.contains("const") && value != schema.at("const")) return value.dump();
  if (schema.contains("enum")) {
    const json& words = schema.at("enum");
    if (std::find(words.begin(), words.end(), value) == words.end()) return value.dump();
  }
  const std::string type = schema.value("type", "");
  if ((type == "object" && !value.is_object()) || (type == "array" && !value.is_array()) ||
      (type == "string" && !value.is_string()) ||
      (type == "integer" && !value.is_number_integer())) {
    return "no " + type + ": " + value.dump().substr(0, 60);
  }
  for (const json& key : schema.value("required", json::array())) {
    if (!value.contains(key.get<std::string>())) return "without " + key.dump();
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, part] : value.items()) {
    if (!value.is_object()) break;
    const bool named = properties.contains(key);
    if (!named && !schema.contains("additionalProperties")) continue;
    const json& rule = named ? properties.at(key) : schema.at("additionalProperties");
    if (rule.is_boolean()) return "unknown key " + key;
    if (const std::string wrong = violation(part, rule, root); !wrong.empty()) return wrong;
  }
  if (!value.is_array() || !schema.contains("items")) return "";
  for (const json& part : value) {
    if (const std::string wrong = violation(part, schema.at("items"), root); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

/// True if the interval says what `empty_row` demands of out, or minus infinity of the LSE.
bool demanded(const json& answer, std::size_t n, double value) {
  const double lo = number(answer.at("lo").at(n)), hi = number(answer.at("hi").at(n));
  if (std::isnan(value)) return std::isnan(lo) && std::isnan(hi);
  return lo == value && hi == value;
}

void compare(const json& test) {
  INFO(test.at("comment").get<std::string>());
  const second_truth::Answers answers = second_truth::answer(input_of(test));
  const json& out = test.at("answers").at("out");
  const json& lse = test.at("answers").at("lse");
  REQUIRE(answers.out.size() == out.at("lo").size());
  REQUIRE(answers.rows.size() == lse.at("lo").size());
  const std::size_t columns = answers.rows.empty() ? 0 : answers.out.size() / answers.rows.size();
  const bool nan = test.at("spec").value("empty_row", "zero") == "nan";
  compare_gradients(answers, test.at("answers"), test.at("tensors"));
  for (std::size_t row = 0; row < answers.rows.size(); ++row) {
    REQUIRE(answers.rows[row] != second_truth::RowKind::not_a_number);
    const bool empty = answers.rows[row] == second_truth::RowKind::empty;
    if (empty) {
      CHECK(demanded(lse, row, -HUGE_VAL));
    } else {
      CHECK(outside(answers.lse[row], lse, row) == "");
    }
    for (std::size_t n = row * columns; n < (row + 1) * columns; ++n) {
      if (empty) {
        CHECK(demanded(out, n, nan ? NAN : 0.0));
      } else {
        CHECK(outside(answers.out[n], out, n) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("the vector files are what the generator writes, bit for bit") {
  std::uintmax_t bytes = 0;
  for (const vectors::VectorFile& file : vectors::vector_files()) {
    INFO(file.name);
    CHECK(text_of(file.name) == vectors::vector_text(file));
    bytes += std::filesystem::file_size("tests/vectors/" + file.name);
  }
  CHECK(bytes <= 5'000'000);
}

TEST_CASE("the vector files are as their schema says, and the schema refuses others") {
  const json schema = json::parse(text_of("schema.json"));
  for (const vectors::VectorFile& file : vectors::vector_files()) {
    const json vectors = json::parse(text_of(file.name));
    CHECK(violation(vectors, schema, schema) == "");
    json broken = vectors;
    broken["tests"][0]["tensors"]["q"].erase("bytes");
    CHECK(violation(broken, schema, schema) == "without \"bytes\"");
    broken = vectors;
    broken["tests"][0]["answer"] = 1;
    CHECK(violation(broken, schema, schema) == "unknown key answer");
  }
}

TEST_CASE("a second truth that shares no code with the judge lies in every interval") {
  for (const vectors::VectorFile& file : vectors::vector_files()) {
    const json vectors = json::parse(text_of(file.name));
    CHECK(vectors.at("numberOfTests") == vectors.at("tests").size());
    for (const json& test : vectors.at("tests")) compare(test);
  }
}
