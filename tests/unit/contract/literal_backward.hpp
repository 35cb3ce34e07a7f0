// A second implementation of T2, (27)-(34) of docs/contract.md, formula by formula in long double
// and with none of the product's code.
#pragma once

#include <vector>

#include "tests/unit/contract/gradient_fixture.hpp"

namespace ringproof::test {

/// The coefficients of (41) of one row; zeros at keys that it does not see.
struct LiteralMagnitudes {
  std::vector<long double> S, P, w;  // [Nk] S*, P*, w*
  long double Aq = 0, F = 0;         // F only where D is a product with out
  bool lists_delta = false;
};

struct LiteralGradients {
  std::vector<std::vector<long double>> dq;     // [rows][D]
  std::vector<std::vector<long double>> dbias;  // [rows][Nk]
  std::vector<long double> dsink;               // [rows]
  std::vector<std::vector<long double>> dk;     // [Nk][D]
  std::vector<std::vector<long double>> dv;     // [Nk][Dv]
  // Sums of absolute values, for H1: [rows], [Nk].
  std::vector<long double> dq_size, dk_size, dv_size;
  std::vector<LiteralMagnitudes> magnitudes;  // [rows]
  long double largest_budget = 0;             // beyond 1 the product may round up to e^x
};

LiteralGradients literal_gradients(const oracle::Contract&, const GradientFixture&);

}  // namespace ringproof::test
