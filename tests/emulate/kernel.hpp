// A forward attention kernel in real arithmetic (float or double of this machine, casts, FTZ,
// truncating
// matrix units), for any Numerics and any forward problem. It is slow, and right by construction:
// what it
// computes is what its contract allows. It takes nothing from the judge but the problem's plain
// data.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"
#include "tests/emulate/numerics.hpp"

namespace ringproof::emulate {

struct Answers {
  std::vector<double> out;  // [B, H, Nq, Dv] values of Numerics::output
  std::vector<double> lse;  // [B, H, Nq] values of fp32, or of binary64
};

/// `seed` chooses errors of special functions, orders and partitions.
Answers run_forward(const oracle::Problem&, const Numerics&, std::uint64_t seed);

/// May query i of head h see key j? From the text of docs/formats.md, one key at a time.
bool sees(const oracle::Problem&, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

}  // namespace ringproof::emulate
