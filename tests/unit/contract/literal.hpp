// A second implementation of sections 3 to 5 of docs/contract.md, written formula by formula in
// long double, with none of the product's code: no hoisting, no vectors, no shared code. Slow on
// purpose.
#pragma once

#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/unit/contract/row_fixture.hpp"

namespace ringproof::test {

struct LiteralBound {
  std::vector<long double> out;
  long double lse = 0, functional = 0;
  long double largest_budget = 0;  // of any C, A, B: beyond 1 the product may round up to e^x
};

LiteralBound literal_bound(const oracle::Contract&, const RowFixture&);

}  // namespace ringproof::test
