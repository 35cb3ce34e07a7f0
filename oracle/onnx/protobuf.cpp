#include "oracle/onnx/protobuf.hpp"

#include <bit>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {

float WireField::number32() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

std::string WireField::text() const {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void FieldReader::refuse(const char* what) const {
  throw BadInput(origin_ + ": not an ONNX protobuf (" + what + ")");
}

std::uint64_t FieldReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint64_t>(take(1)[0]);
    if (shift == 63 && byte > 1) refuse("a number of more than 64 bits");
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number of more than 64 bits");
}

std::uint64_t FieldReader::fixed(std::size_t bytes) {
  std::uint64_t value = 0;
  const Bytes stored = take(bytes);
  for (std::size_t n = 0; n < bytes; ++n) value |= static_cast<std::uint64_t>(stored[n]) << 8 * n;
  return value;
}

Bytes FieldReader::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) refuse("a field is longer than the message");
  const Bytes taken = rest_.first(static_cast<std::size_t>(bytes));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

std::optional<WireField> FieldReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t tag = varint();
  if (tag >> 3 == 0 || tag >> 32 != 0) refuse("no field has this number");
  WireField field{.number = static_cast<std::uint32_t>(tag >> 3),
                  .type = static_cast<WireType>(tag & 7)};
  switch (field.type) {
    case WireType::varint:
      field.value = varint();
      return field;
    case WireType::fixed64:
      field.value = fixed(8);
      return field;
    case WireType::bytes:
      field.bytes = take(varint());
      return field;
    case WireType::fixed32:
      field.value = fixed(4);
      return field;
  }
  refuse("a field of an unknown type");
}

void append_integers(const WireField& field, const std::string& origin,
                     std::vector<std::int64_t>& integers) {
  if (field.type != WireType::bytes) {
    integers.push_back(field.integer());
    return;
  }
  FieldReader packed(field.bytes, origin);
  while (!packed.empty()) integers.push_back(static_cast<std::int64_t>(packed.varint()));
}

}  // namespace ringproof::oracle
