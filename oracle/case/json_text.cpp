// A SAX consumer that builds the value itself and stops at the first thing this project refuses.
#include "oracle/case/json_text.hpp"

#include <utility>
#include <vector>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

using nlohmann::json;

class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(JsonLimits limits) : limits_(limits) {}

  json& value() { return root_; }
  const std::string& problem() const { return problem_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) return fail("key " + in_quotes(name) + " occurs twice");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const json::exception& error) override {
    // Error 406 is a number beyond binary64; everything else is grammar or encoding.
    const bool too_large = error.id == 406;
    return fail((too_large ? "number out of range, byte " : "not JSON, byte ") +
                std::to_string(byte));
  }

 private:
  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  json* place(json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool add(json value) {
    if (++count_ > limits_.values) {
      return fail("more than " + std::to_string(limits_.values) + " JSON values");
    }
    place(std::move(value));
    return true;
  }

  bool open(json&& container) {
    if (open_.size() == static_cast<std::size_t>(limits_.depth)) {
      return fail("JSON nested deeper than " + std::to_string(limits_.depth));
    }
    if (++count_ > limits_.values) return add(nullptr);
    // Pointers into the parents stay valid: only the innermost container grows.
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  json root_;
  std::vector<json*> open_;
  std::string key_, problem_;
  std::size_t count_ = 0;
};

}  // namespace

json parse_json(std::string_view text, const std::string& origin, JsonLimits limits) {
  // The library takes a zero byte for the end of the text and would not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw BadInput(origin + ": not JSON, byte " + std::to_string(zero + 1));
  }
  Builder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    throw BadInput(origin + ": " + builder.problem());
  }
  return std::move(builder.value());
}

}  // namespace ringproof::oracle
