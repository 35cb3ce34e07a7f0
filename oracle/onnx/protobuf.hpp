// The wire format of protocol buffers, as far as ONNX test files need it: fields in the order in
// which they stand. Not a general library: what fields mean is written where they are read, unknown
// ones are passed over, and groups, which ONNX does not use, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringproof::oracle {

using Bytes = std::span<const std::byte>;

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// One field: its number, and either a number or bytes.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // of varint, fixed64 and fixed32
  Bytes bytes{};            // of bytes: a message, a text, or packed numbers

  std::int64_t integer() const { return static_cast<std::int64_t>(value); }
  float number32() const;
  std::string text() const;
};

/// The fields of a message. Throws BadInput "ORIGIN: ..." for bytes that are none.
class FieldReader {
 public:
  FieldReader(Bytes message, const std::string& origin) : rest_(message), origin_(origin) {}
  std::optional<WireField> next();
  /// Packed numbers are a message without tags.
  std::uint64_t varint();
  bool empty() const { return rest_.empty(); }

 private:
  std::uint64_t fixed(std::size_t bytes);
  Bytes take(std::uint64_t bytes);
  [[noreturn]] void refuse(const char* what) const;

  Bytes rest_;
  const std::string& origin_;
};

/// Appends the integers of a repeated field, which may be packed or stand alone.
void append_integers(const WireField&, const std::string& origin, std::vector<std::int64_t>&);

}  // namespace ringproof::oracle
