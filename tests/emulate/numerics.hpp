// What one kernel's arithmetic is: formats, order of operations, errors of its special functions,
// how it
// merges partial results. Plain values; zoo.cpp fills them so that they conform to a named
// contract.
#pragma once

#include <cstdint>

#include "oracle/case/dtype.hpp"
#include "oracle/case/spec.hpp"
#include "oracle/contract/contract.hpp"
#include "tests/emulate/small_float.hpp"

namespace ringproof::emulate {

/// How terms are added up. Each is a legal order for `any_order`, except `truncating` (mma).
enum class Sum { sequential, fused, reversed, pairwise, lanes, truncating };
/// In which direction the declared error of a special function is used up.
enum class Noise { none, random, up, down };
enum class Argument { sub, sub_log2, fused };
enum class Order { ascending, descending, shuffled };

struct Numerics {
  bool binary64 = false;  // the kernel computes in binary64, not in fp32
  oracle::DType input = oracle::DType::f32, output = oracle::DType::f32;
  bool flush = false;  // FTZ and DAZ while the kernel runs

  SmallFloat load;          // q, k, v re-rounded when loaded
  bool root_scale = false;  // q and k each scaled by the root of the scale, stored in `load`
  Sum score_sum = Sum::sequential, l_sum = Sum::sequential, pv_sum = Sum::sequential;
  int step = 16;           // products of one truncating step
  SmallFloat score_store;  // matmul result, scaled, capped and biased scores as stored

  Argument argument = Argument::sub;
  Noise noise = Noise::random;
  double exp_error = 0, log_error = 0, log_absolute = 0, tanh_error = 0, sigmoid_error = 0,
         divide_error = 0;
  bool exp_zero_noisy = false;  // exp(0) is not exactly 1

  SmallFloat p_cast;
  double p_scale = 1;
  bool two_pass = false;  // P divided by l before the cast
  bool sum_from_cast = false;
  bool reciprocal = false;  // 1 / l and a product in place of a division
  std::int64_t block = 64;
  std::int64_t leaf = 0;  // > 0: sums of so many terms from zero, then added (`+acc`)
  Order order = Order::ascending;
  double lazy_log2 = 0;
  bool lse_base_two = false;  // only where no LSE is merged

  std::int64_t ranks = 1;
  oracle::Merge merge = oracle::Merge::none;
  bool carried = false;              // unnormalized: the state travels from rank to rank
  bool contiguous = false;           // split kernels: ranges of keys, in order
  std::int64_t longest_partial = 0;  // 0: no limit
  oracle::RingLayout layout = oracle::RingLayout::contiguous;
  bool known_ring = false;  // the spec declares layout and order
  oracle::RingOrder ring_order = oracle::RingOrder::down;
  SmallFloat partial_store, running_store;
};

}  // namespace ringproof::emulate
