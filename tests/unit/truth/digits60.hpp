// Attention and its gradients written a second time, on binary floating-point numbers of 60 decimal
// digits: own score rule, other orders of summation (keys and rows from the last to the first,
// dimensions by halves), D as the mean of dP. For tests of the truth, which shares no code with it.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <optional>
#include <vector>

#include "oracle/truth/backward.hpp"

namespace ringproof::test {

using Digits60 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<60>,
                                               boost::multiprecision::et_off>;

/// The numbers of a problem, dequantised, in canonical axes; they may be changed.
struct Numbers60 {
  explicit Numbers60(const oracle::Problem&);

  const oracle::Problem& problem;
  std::vector<Digits60> q, k, v;  // [B, H, Nq, D], [B, Hkv, Nk, D], [B, Hkv, Nk, Dv]
  std::vector<Digits60> bias;     // [B, H, Nq, Nk], broadcast; empty without one
  std::vector<Digits60> sinks;    // [H]; empty without them

  std::size_t query(std::int64_t b, std::int64_t h, std::int64_t i) const;
  std::size_t key(std::int64_t b, std::int64_t kv, std::int64_t j) const;
};

struct Answer60 {
  std::vector<Digits60> out;  // [Dv]
  Digits60 lse;
};
/// One row; nothing if it sees no key.
std::optional<Answer60> answer60(const Numbers60&, std::int64_t b, std::int64_t h, std::int64_t i);

/// Sum of out dout + lse dlse over all rows that see a key.
Digits60 objective60(const Numbers60&, const oracle::Upstream&);

/// The gradients of it, in the shapes of the numbers (bias: not summed over what is broadcast).
struct Gradients60 {
  std::vector<Digits60> dq, dk, dv, dbias, dsinks;
};
Gradients60 gradients60(const Numbers60&, const oracle::Upstream&);

}  // namespace ringproof::test
