// Values as bytes and back, for members of a team. One list of a structure's members serves both
// directions; it binds them all by name, so that a member added to the structure and forgotten here
// does not compile.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ringproof::oracle {

class WireWriter {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::string bytes() && { return std::move(bytes_); }

 private:
  template <class Value>
  void put(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      transfer(*this, const_cast<Value&>(value));  // only read
    }
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) put(value);
  }
  template <class Key, class Value>
  void put(const std::map<Key, Value>& values) {
    put(values.size());
    for (const auto& [key, value] : values) {
      put(key);
      put(value);
    }
  }

  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(const std::string& bytes) : bytes_(bytes) {}
  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

 private:
  template <class Value>
  void get(Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      std::memcpy(&value, next(sizeof value), sizeof value);
    } else {
      transfer(*this, value);
    }
  }
  void get(std::string& text) {
    const auto size = number<std::size_t>();
    text.assign(next(size), size);
  }
  template <class Value>
  void get(std::optional<Value>& value) {
    value.reset();
    if (number<bool>()) get(value.emplace());
  }
  template <class Value>
  void get(std::vector<Value>& values) {
    values.clear();
    for (auto left = number<std::size_t>(); left > 0; --left) get(values.emplace_back());
  }
  template <class Key, class Value>
  void get(std::map<Key, Value>& values) {
    values.clear();
    for (auto left = number<std::size_t>(); left > 0; --left) {
      const auto key = number<Key>();
      get(values[key]);
    }
  }
  template <class Value>
  Value number() {
    Value value{};
    get(value);
    return value;
  }
  const char* next(std::size_t size) {
    if (size > bytes_.size() - place_) throw std::logic_error("a message of a team ends too early");
    place_ += size;
    return bytes_.data() + place_ - size;
  }

  const std::string& bytes_;
  std::size_t place_ = 0;
};

/// A value in one message. Anything that transfer(wire, value) knows.
template <class Value>
std::string to_wire(const Value& value) {
  WireWriter wire;
  wire(value);
  return std::move(wire).bytes();
}

template <class Value>
Value from_wire(const std::string& bytes) {
  Value value{};
  WireReader wire(bytes);
  wire(value);
  return value;
}

}  // namespace ringproof::oracle
