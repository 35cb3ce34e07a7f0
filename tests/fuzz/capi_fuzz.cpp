// The C library called with structs that bytes describe: shapes, types and strides right or wrong,
// memory exactly as large as they say, so that a read beyond it is seen. Each call must return a
// status of the header other than RINGPROOF_FAILURE and end its message inside the buffer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "oracle/ringproof.h"

namespace {

/// Bytes as numbers; zeros when they are used up.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  std::uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
  int below(int limit) { return byte() % limit; }
  /// Mostly 1 to 4, else what no axis has, or none.
  std::int64_t length() {
    const int drawn = below(64);
    return drawn == 63 ? -1 : drawn == 62 ? 0 : 1 + drawn % 4;
  }
  template <class T>
  T raw() {
    T number;
    std::array<std::uint8_t, sizeof(T)> bytes;
    for (auto& one : bytes) one = byte();
    std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }

 private:
  const std::uint8_t *at_, *end_;
};

/// Tensors of one call, and the memory behind them.
class Tensors {
 public:
  explicit Tensors(Reader& reader) : reader_(reader) {}

  /// A tensor of this shape, or of one that the bytes changed.
  ringproof_tensor draw(std::vector<std::int64_t> shape, int usual_type) {
    if (reader_.below(64) == 0) shape.assign(static_cast<std::size_t>(reader_.below(6)), 2);
    if (reader_.below(64) == 0 && !shape.empty()) shape.back() = reader_.length();
    shapes_.push_back(shape);
    const int type = reader_.below(32) == 0 ? reader_.raw<std::uint16_t>() : usual_type;
    ringproof_tensor tensor = ringproof_view(nullptr, type, static_cast<std::int32_t>(shape.size()),
                                             shapes_.back().data());
    const std::size_t rows = steps(shape);
    if (reader_.below(3) == 0) tensor.strides = shapes_.back().data();
    memory_.emplace_back(rows * std::max<std::size_t>(1, tensor.dtype.bits / 8));
    for (auto& byte : memory_.back()) byte = reader_.byte();
    // A vector of none has no address, which would mean an absent tensor.
    static std::uint8_t nothing;
    tensor.data = memory_.back().empty() ? &nothing : memory_.back().data();
    return tensor;
  }
  /// The same in one of three calls, else absent.
  ringproof_tensor maybe(std::vector<std::int64_t> shape, int usual_type) {
    return reader_.below(3) == 0 ? draw(std::move(shape), usual_type) : ringproof_tensor{};
  }

 private:
  /// Elements to provide: those of C order, or of strides drawn beside it and left in shapes_.
  std::size_t steps(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t last = 0, count = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = reader_.below(8) == 0 ? reader_.below(5) : count;
      last += std::max<std::int64_t>(0, shape[axis] - 1) * strides[axis];
      count *= std::max<std::int64_t>(0, shape[axis]);
    }
    shapes_.push_back(strides);
    return static_cast<std::size_t>(std::max(count, last + 1));
  }

  Reader& reader_;
  std::deque<std::vector<std::int64_t>> shapes_;
  std::deque<std::vector<std::uint8_t>> memory_;
};

constexpr std::array kTypes{RINGPROOF_F32, RINGPROOF_BF16,    RINGPROOF_F16,
                            RINGPROOF_F64, RINGPROOF_F8_E4M3, RINGPROOF_F8_E5M2};
constexpr std::array kContracts{"fp32",       "fp64",    "bf16-flash",     "fp16-eager",
                                "bf16-eager", "bf16-io", "fp8-e4m3-flash", "tf32-flash"};

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Reader reader(data, size);
  Tensors tensors(reader);
  const std::int64_t B = reader.length(), H = reader.length(), Hkv = reader.below(4) ? H : 1;
  const std::int64_t Nq = reader.length(), Nk = reader.length(), D = reader.length(), Dv = D;
  const int type = kTypes[static_cast<std::size_t>(reader.below(kTypes.size()))];

  ringproof_problem problem;
  ringproof_problem_init(&problem);
  problem.q = tensors.draw({B, H, Nq, D}, type);
  problem.k = tensors.draw({B, Hkv, Nk, D}, type);
  problem.v = tensors.draw({B, Hkv, Nk, Dv}, type);
  problem.bias = tensors.maybe({H, Nq, Nk}, RINGPROOF_F32);
  problem.mask = tensors.maybe({Nq, Nk}, RINGPROOF_BOOL);
  problem.alibi_slopes = tensors.maybe({H}, RINGPROOF_F32);
  problem.sinks = tensors.maybe({H}, RINGPROOF_F32);
  problem.key_lengths = tensors.maybe({B}, RINGPROOF_I32);
  problem.positions_q = tensors.maybe({Nq}, RINGPROOF_I64);
  problem.positions_k = tensors.maybe({Nk}, RINGPROOF_I64);
  problem.documents_q = tensors.maybe({Nq}, RINGPROOF_I32);
  problem.documents_k = tensors.maybe({Nk}, RINGPROOF_I32);
  problem.k_scale = tensors.maybe({1, 1, 1, 1}, RINGPROOF_F32);
  problem.dout = tensors.maybe({B, H, Nq, Dv}, type);
  problem.dlse = tensors.maybe({B, H, Nq}, RINGPROOF_F32);
  problem.layout = reader.below(8) == 0 ? reader.below(5) : RINGPROOF_BHND;
  problem.causal = reader.below(4);
  problem.window_left = reader.below(6) - 2;
  problem.window_right = reader.below(6) - 2;
  problem.empty_row = reader.below(4);
  problem.lse_base = reader.below(4);
  problem.ranks = reader.below(6) - 1;
  problem.ring_layout = reader.below(5);
  problem.ring_order = reader.below(3);
  if (reader.below(4) == 0) problem.has_scale = 1, problem.scale = reader.raw<double>();
  if (reader.below(4) == 0) problem.softcap = reader.raw<double>();
  if (reader.below(16) == 0) problem.struct_size = reader.raw<std::uint32_t>() % 2048;

  ringproof_answer answer;
  ringproof_answer_init(&answer);
  answer.out = tensors.draw({B, H, Nq, Dv}, type);
  answer.lse = tensors.maybe({B, H, Nq}, RINGPROOF_F32);
  answer.dq = tensors.maybe({B, H, Nq, D}, type);
  answer.dk = tensors.maybe({B, Hkv, Nk, D}, type);
  answer.dv = tensors.maybe({B, Hkv, Nk, Dv}, type);
  answer.dbias = tensors.maybe({H, Nq, Nk}, RINGPROOF_F32);
  answer.dsinks = tensors.maybe({H}, RINGPROOF_F32);

  ringproof_options options;
  ringproof_options_init(&options);
  options.threads = 1 + reader.below(2);
  options.rows = reader.below(5) - 1;
  options.precision = reader.below(3) == 0 ? reader.below(200) : 0;
  options.probabilistic = reader.below(3) == 0;
  const std::string text =
      reader.below(4) == 0 ? std::string(reinterpret_cast<const char*>(data), size)
                           : kContracts[static_cast<std::size_t>(reader.below(kContracts.size()))];

  ringproof_result result;
  ringproof_result_init(&result);
  std::vector<char> message(1 + static_cast<std::size_t>(reader.byte()) * 16, 'x');
  const int status = ringproof_check(&problem, &answer, text.c_str(), &options, &result,
                                     message.data(), message.size());
  expect(status == RINGPROOF_OK || status == RINGPROOF_BAD_INPUT);
  expect(std::find(message.begin(), message.end(), '\0') != message.end());
  return 0;
}
