// A second truth, written from docs/formats.md alone: it shares no line with oracle/ (own bit
// patterns, own positions and masks, another number type, no bounds), so that a mistake in one of
// the two shows as a difference. Decimal floating point would do as well; binary numbers of 60
// decimal digits make whatever is exact come out exact. Slow, and not a proof: it has no radius.
#pragma once

#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace ringproof::second_truth {

using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<60>,
                                           boost::multiprecision::et_off>;

/// One tensor, decoded; NaN and infinities stay what they are.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> values;          // of float and BOOL tensors
  std::vector<std::int64_t> integers;  // of I32 and I64 tensors
};

/// Bytes of a tensor of the given safetensors type, little endian.
Array decode(const std::string& dtype, std::vector<std::int64_t> shape,
             std::span<const std::byte> bytes);

struct Input {
  nlohmann::json spec;
  std::map<std::string, Array> tensors;
};

/// What one query row is, apart from numbers.
enum class RowKind {
  ordinary,
  empty,         // nothing visible, no sink
  not_a_number,  // a visible input is not finite
};

/// In canonical order, natural logarithm. Elements of rows that are not ordinary are 0; dk and dv
/// are right only if no row is not_a_number.
struct Answers {
  std::vector<RowKind> rows;        // [B, H, Nq]
  std::vector<Real> out, lse;       // [B, H, Nq, Dv], [B, H, Nq]
  std::vector<Real> dq, dk, dv;     // as q, k, v; empty without dout
  std::vector<Real> dbias, dsinks;  // dbias [B, H, Nq, Nk] before broadcast axes are summed
};
Answers answer(const Input&);

}  // namespace ringproof::second_truth
