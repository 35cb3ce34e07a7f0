// The exact gradients of a small problem with the bounds of a contract, element by element. Judging
// answers goes row by row and keeps nothing (oracle/judge).
#pragma once

#include <array>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

/// One element: the exact value lies in the ball, a conforming kernel within `bound` of it before
/// the last rounding. An infinite bound: nothing is known here.
struct GradientBall {
  Certified exact;
  double bound = 0;
};

struct GradientBalls {
  std::vector<GradientBall> dq;         // [B, H, Nq, D]
  std::vector<GradientBall> dk;         // [B, Hkv, Nk, D]
  std::vector<GradientBall> dv;         // [B, Hkv, Nk, Dv]
  std::vector<double> row_term;         // [B, H, Nq] D_i = dout_i . out_i, rounded
  std::vector<double> row_term_radius;  // [B, H, Nq] how far the exact D_i may be from it
  std::vector<double> largest_query;    // [B, H, Nq] of the row's numbers
  std::vector<double> largest_key;      // [B, Hkv] of all keys' numbers
};

GradientBalls gradient_balls(const Problem&, const Upstream&, const Contract&);

}  // namespace ringproof::oracle
