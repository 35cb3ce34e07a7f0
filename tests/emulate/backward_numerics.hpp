// What the backward pass of one kernel does beyond its Numerics: casts, stores, orders of
// operations. Filled from what the contract declares; plain values.
#pragma once

#include <random>

#include "tests/emulate/numerics.hpp"

namespace ringproof::emulate {

struct BackwardNumerics {
  bool isolated = false;             // out and LSE are inputs
  bool stored = false;               // P of a two-pass softmax, else exp(s - L)
  bool delta_from_products = false;  // D = sum P dP, else dO.O
  bool cast_in_ds = false;           // dS from the cast P
  bool factor_first = false;         // t f before P
  bool scale_first = false;          // the scale before the cast of dS
  bool heads_apart = false;          // dk, dv of each head summed apart and stored
  Sum dp_sum = Sum::sequential, delta_sum = Sum::sequential, gradient_sum = Sum::sequential;
  SmallFloat dp_store, ds_cast, gradient_store, partial_store;
  std::int64_t rows_of_partial = 0, keys_of_partial = 0;  // 0: one sum, or shares of a ring
  std::int64_t ranks = 1;
};

/// A kernel that conforms to the contract, and whose forward pass is `numerics`.
BackwardNumerics draw_backward(const oracle::Contract&, const Numerics&, std::mt19937_64&);

}  // namespace ringproof::emulate
