// Sums and dot products on the tape, one function an accumulator model: the adversary's reading of
// the `acc` objects of a contract and their log budgets (2)(3).
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/adversary/tape.hpp"

namespace ringproof::adversary {

/// An addend and its place on the tile grid: terms of one mma step or one leaf share place / b.
struct Term {
  Traced value;
  std::int64_t place;
};

/// A sum that may still be empty (an exact zero that no addition has touched).
struct Sum {
  Traced value;
  bool empty() const { return value.node < 0; }
};

/// Relative error of one product before it is added.
double product_unit(const oracle::Accumulator&);
/// Adds the terms to `carry`, in the order given. `underflow` is the eta of each addition.
/// A tree has no carry: it sums everything at once.
Sum accumulate(Tape&, const oracle::Accumulator&, double underflow, const std::vector<Term>& terms,
               Sum carry);
/// Places must be whole multiples of this for a tile: the smallest tile the model can work on.
std::int64_t tile_unit(const oracle::Accumulator&);

}  // namespace ringproof::adversary
