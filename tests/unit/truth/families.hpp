// Problems for the tests of the truth: every input family of the fault catalogue and the extremes
// of the number formats, crossed with storage types, masks and the other parts of the score rule.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "oracle/truth/backward.hpp"

namespace ringproof::test {

/// A problem together with the memory its tensors point to.
struct OwnedProblem {
  oracle::Problem problem;
  std::deque<std::vector<std::byte>> storage;

  /// A new tensor of `values` ([B, H, N, D], rounded to `type`).
  oracle::Tensor tensor(oracle::DType type, std::array<std::int64_t, 4> shape,
                        const std::vector<double>& values);
};

/// How the numbers are drawn.
enum class Family {
  randn,
  equal_scores,
  value_ones,
  ascending,
  descending,
  sharp,
  dominant_key,
  unequal_mass,
  huge_scores_tiny_gaps,
  repeated_maxima,
  tiny,
  huge,
  random_bits,
  exponent_spread,
  dot_cancels,
  value_cancels,
  value_zero,
  query_zero,
  wide_span,
  subnormal_values
};
inline constexpr int kFamilies = 20;
std::string_view name(Family);

/// Which parts of the score rule are in use.
struct Shape {
  std::int64_t batches = 1, heads = 1, kv_heads = 1, queries = 8, keys = 24;
  std::int64_t head_dim = 16, value_dim = 8;
  oracle::DType q_type = oracle::DType::f32, kv_type = oracle::DType::f32;
  bool causal = false, window = false, mask = false, bias = false, finite_mask_bias = false;
  bool alibi = false, sinks = false, key_lengths = false, documents = false, factors = false;
  bool permuted_positions = false;
  bool poison = false;  // poison_value in every key that no query sees
  double poison_value = std::numeric_limits<double>::quiet_NaN();
  double softcap = 0;
  double scale = 0;  // 0: the default, 1/sqrt(D)
};

/// A problem of the family; the same seed gives the same bits.
OwnedProblem make_problem(Family, const Shape&, std::uint64_t seed);
/// A normal number, the same with every standard library.
double normal(std::mt19937_64&);
/// Any finite bit pattern of binary32 (of binary64 for f64).
double random_finite(std::mt19937_64&, oracle::DType);

/// dout and dlse for a problem of the family, in the types of q; the numbers suit the family. Some
/// rows of dout are zeros. With `given`: also out and lse as a kernel might have returned them.
oracle::Upstream make_upstream(Family, const Shape&, std::uint64_t seed, OwnedProblem&,
                               bool given = false);
/// A shape drawn at random: every feature appears, alone and with others.
Shape random_shape(std::mt19937_64&);
std::string describe(Family, const Shape&, std::uint64_t seed);

}  // namespace ringproof::test
