// Acceptance of one number: formula (35) of docs/contract.md.
// The exact value is known as a certified ball, the contract allows an error e before the output is
// rounded, and the storage type rounds once more. A conforming kernel then lies in the wide box,
// and an answer inside the narrow box is certainly within the bound; between the two more precision
// decides. Not here: where the ball and the bound come from, and what a whole tensor's verdict is.
#pragma once

#include "oracle/case/dtype.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// How an answer was stored.
struct OutputRule {
  DType dtype = DType::f32;
  RoundMode round = RoundMode::rn;
  Overflow overflow = Overflow::inf;
  bool flush_to_zero = false;
  bool rounds = true;  // false: the bound already contains the storage (the LSE of theorem T3)
};

/// Accepted values low <= x <= high; -0 equals +0.
struct Box {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

enum class Decision { pass, fail, unsure };

/// ACC(lo, hi): every value a conforming kernel can return.
Box wide_box(const Certified& exact, double bound, const OutputRule&);
/// ACC(lo', hi'): values that are accepted wherever in its ball the exact value lies; may be empty.
Box narrow_box(const Certified& exact, double bound, const OutputRule&);
/// PASS inside the narrow box, FAIL outside the wide one. An infinite bound accepts anything.
/// Throws std::logic_error for a NaN or negative bound: that is a mistake of the judge, never a
/// PASS.
Decision accept(double answer, const Certified& exact, double bound, const OutputRule&);

/// The most that storing a number of at most this magnitude can add to its error (0 if it does not
/// round).
double rounding_step(const OutputRule&, double magnitude);

/// |answer - exact| over everything the rule allows (bound, radius, the storage's own rounding): at
/// most 1 for an accepted answer and above 1 for a refused one, up to ties. Infinity for NaN.
double error_over_bound(double answer, const Certified& exact, double bound, const OutputRule&);

}  // namespace ringproof::oracle
