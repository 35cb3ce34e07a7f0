// (32a) of docs/contract.md read literally: the gradients of one KV head under a rule of what goes
// wrong, and how far a kernel may be from them, element by element in extended precision. What is
// known of the pairs is taken as it is held (oracle/diagnose/gradient_pairs.hpp); constants of the
// contract are read from the contract, and none of the product's formulas is used.
#pragma once

#include <vector>

#include "oracle/diagnose/gradient_additions.hpp"

namespace ringproof::test {

using Real = long double;

struct LiteralBox {
  std::vector<Real> value, bound;
  explicit LiteralBox(std::size_t size = 0) : value(size), bound(size) {}
};

struct LiteralBoxes {
  LiteralBox dq, dk, dv;  // [heads, Nq, D], [Nk, D], [Nk, Dv]
  LiteralBox dbias;       // [heads, Nq, Nk], before any sum
  LiteralBox dsinks;      // [heads]
};

LiteralBoxes literal_boxes(const oracle::Contract&, const oracle::GradientPairs&,
                           const oracle::GradientRule&, const oracle::BiasBudget&);

/// True if dk and dv are added, each more than zero.
bool both_added(const oracle::GradientRule&);
/// The last step: spreads, sums of two gradients, and places.
void store_boxes(const oracle::Contract&, const oracle::GradientPairs&, const oracle::GradientRule&,
                 LiteralBoxes&);

}  // namespace ringproof::test
