// How far a sum may drift: the log budget Gamma of docs/contract.md, (1)-(3), from the accumulator
// a contract declares and from which terms the sum has. Pure functions on numbers; nothing about
// attention.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/contract/contract.hpp"

namespace ringproof::oracle {

/// hat(u) = -ln(1 - u): every factor 1 + delta with |delta| <= u is e^theta with |theta| <= hat(u).
/// (1)
double hat(double u);
double sum_of_hats(const std::vector<double>& relative_errors);

/// The terms of a sum that are not zero, as maximal runs of consecutive ones, and where a kernel
/// may cut a run because the terms lie on several ranks.
struct Terms {
  std::int64_t count = 0;          // n
  std::vector<std::int64_t> runs;  // their lengths
  bool first_at_zero = true;       // the first run starts where the grid of tiles starts
  std::int64_t cuts = 0;           // C
  std::int64_t dealt_to = 1;  // ranks to which each run may be dealt out: striped or unknown layout

  /// A dot product, or any sum over all of its `count` terms.
  static Terms contiguous(std::int64_t count);
  /// S(b): tiles of b terms that hold a term, for tiles made of whole steps. (3)
  std::int64_t steps(std::int64_t b) const;
};

/// Gamma(n): the log budget of each term of the sum. (2), (3)
double gamma(const Accumulator&, const Terms&);

/// True if the accumulator returns a sum exactly whenever all partial sums are representable:
/// rounding additions do, and the matrix units of (3) if they keep the largest addend whole. Used
/// by (26a).
bool exact_where_representable(const Accumulator&);
/// Significand bits of the partial sums: 24 for 2^-24 and for the matrix units.
int accumulator_digits(const Accumulator&);

}  // namespace ringproof::oracle
