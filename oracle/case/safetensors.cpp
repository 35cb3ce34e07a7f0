// Reading the container (safetensors.hpp). Nothing in a header is believed before it is checked,
// and nothing is allocated that the header itself does not hold.
#include "oracle/case/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "oracle/case/error.hpp"
#include "oracle/case/json_text.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the data of a file is little endian");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMostAxes = 8;
constexpr std::string_view kSpecKey = "ringproof";

/// Where in the data one tensor lies.
struct Extent {
  std::uint64_t begin, end;
  const std::string* name;
};

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& path) : file_(file), path_(path) {}

  SafeTensors read() {
    const std::string_view header = find_header();
    const json root = parse_json(header, path_ + ": header");
    if (!root.is_object()) refuse("the header is not a JSON object");
    SafeTensors result;
    for (const auto& [name, entry] : root.items()) {
      if (name == "__metadata__") {
        read_metadata(entry, result);
      } else {
        read_tensor(name, entry, result);
      }
    }
    check_cover();
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw BadInput(path_ + ": " + what); }
  [[noreturn]] void refuse(const std::string& tensor, const std::string& what) const {
    refuse("tensor " + in_quotes(tensor) + ": " + what);
  }

  std::string_view find_header() {
    if (file_.size() < kLengthBytes) {
      refuse("not a safetensors file: " + std::to_string(file_.size()) +
             " bytes, shorter than the 8 of its length field");
    }
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), kLengthBytes);
    const std::size_t rest = file_.size() - kLengthBytes;
    if (length > rest || length > kLongestHeader) {
      refuse("not a safetensors file, or cut short: it claims a header of " +
             std::to_string(length) + " bytes and has " + std::to_string(rest) +
             " after the length field");
    }
    data_ = file_.subspan(kLengthBytes + length);
    const auto* text = reinterpret_cast<const char*>(file_.data() + kLengthBytes);
    if (length == 0 || text[0] != '{') refuse("the header does not start with '{'");
    return {text, length};
  }

  void read_metadata(const json& entry, SafeTensors& result) const {
    if (!entry.is_object()) refuse("\"__metadata__\" is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse("metadata " + in_quotes(key) + " is not a string");
      if (key == kSpecKey) result.spec = value.get<std::string>();
    }
  }

  /// A nonnegative integer that JSON may have written in any way it likes, or a refusal.
  std::uint64_t natural(const std::string& tensor, const json& value, const char* what) const {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
      refuse(tensor, std::string(what) + " must be an integer of at least 0, not " +
                         in_quotes(value.dump(-1, ' ', true, json::error_handler_t::replace)));
    }
    return value.get<std::uint64_t>();
  }

  void read_tensor(const std::string& name, const json& entry, SafeTensors& result) {
    const std::string* type = nullptr;
    const json *shape = nullptr, *offsets = nullptr;
    if (!entry.is_object()) refuse(name, "its entry is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (key == "dtype" && value.is_string()) {
        type = value.get_ptr<const std::string*>();
      } else if (key == "shape" && value.is_array()) {
        shape = &value;
      } else if (key == "data_offsets" && value.is_array() && value.size() == 2) {
        offsets = &value;
      } else {
        refuse(name, "bad entry at " + in_quotes(key));
      }
    }
    if (type == nullptr || shape == nullptr || offsets == nullptr) {
      refuse(name, "needs dtype, shape and data_offsets");
    }
    StoredTensor tensor;
    if (!parse_dtype(*type, tensor.dtype))
      refuse(name, "type " + in_quotes(*type) + " is not supported");
    const std::uint64_t bytes = read_shape(name, *shape, tensor);
    const std::uint64_t begin = natural(name, (*offsets)[0], "data_offsets");
    const std::uint64_t end = natural(name, (*offsets)[1], "data_offsets");
    if (begin > end || end > data_.size()) {
      refuse(name, "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) +
                       "] lie outside the " + std::to_string(data_.size()) + " bytes of data");
    }
    if (end - begin != bytes) {
      refuse(name, "its shape needs " + std::to_string(bytes) + " bytes, its data_offsets hold " +
                       std::to_string(end - begin));
    }
    tensor.data = data_.data() + begin;
    const auto [place, fresh] = result.tensors.emplace(name, std::move(tensor));
    extents_.push_back({begin, end, &place->first});
  }

  /// Fills the shape; returns its bytes. The product is taken without the axes of size 0, so that
  /// no axis can be larger than anything that could exist.
  std::uint64_t read_shape(const std::string& name, const json& sizes, StoredTensor& tensor) const {
    if (sizes.size() > kMostAxes) refuse(name, "more than " + std::to_string(kMostAxes) + " axes");
    std::uint64_t product = size_of(tensor.dtype);
    bool empty = false;
    for (const json& value : sizes) {
      const std::uint64_t size = natural(name, value, "shape");
      tensor.shape.push_back(static_cast<std::int64_t>(size));
      empty = empty || size == 0;
      if (size != 0 && (__builtin_mul_overflow(product, size, &product) || product >> 62 != 0)) {
        refuse(name, "its shape has more elements than any memory");
      }
    }
    return empty ? 0 : product;
  }

  /// Tensors in the order of their data: each starts where the one before ends, the last ends the
  /// file.
  void check_cover() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t covered = 0;
    for (const Extent& extent : extents_) {
      if (extent.begin != covered) {
        refuse(*extent.name,
               "its data starts at byte " + std::to_string(extent.begin) +
                   (extent.begin < covered ? ", inside the tensor before it, which ends at "
                                           : ", behind a hole that starts at ") +
                   std::to_string(covered));
      }
      covered = extent.end;
    }
    if (covered != data_.size()) {
      refuse("the tensors end at byte " + std::to_string(covered) + " of " +
             std::to_string(data_.size()) + " bytes of data");
    }
  }

  std::span<const std::byte> file_, data_;
  const std::string& path_;
  std::vector<Extent> extents_;
};

}  // namespace

SafeTensors parse_safetensors(std::span<const std::byte> file, const std::string& path) {
  return Reader(file, path).read();
}

}  // namespace ringproof::oracle
