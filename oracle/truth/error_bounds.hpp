// The constants of the error analysis, each with the lemma of docs/double_double.md that proves it.
// u = 2^-53 is the unit roundoff of binary64; a number of units means units of u^2 = 2^-106.
#pragma once

#include <cstdint>

namespace ringproof::oracle::bounds {

inline constexpr double kUnit = 0x1p-53;
inline constexpr double kUnitSquared = 0x1p-106;

/// Lemma 4: what a sum of at most 2^22 nonnegative terms, computed to nearest, may lack.
inline constexpr double kUp = 1 + 0x1p-30;
/// Lemma 4 for an expression of a few operations.
inline constexpr double kUpFew = 1 + 0x1p-45;

/// Grid constants are not chosen below this, so that no residual underflows (Lemma 5).
inline constexpr double kSmallestGrid = 0x1p-900;
/// Scores and sums beyond this are given up: nothing below it overflows.
inline constexpr double kLargest = 0x1p960;

/// Lemma 6: dot products, absolute error in units of the grid constant C.
inline double dot_fast(double dim) { return (dim * (dim + 1) / 2 + dim) * kUp * kUnitSquared; }
/// Lemma 6b: the smallest 2^53 ab, far from underflow and from the smallest grid.
inline constexpr double kSmallestExactLimit = 0x1p-840;
/// Lemma 7: the same for `tight`, without the share of products that are not exact.
inline double dot_tight(double dim) { return dim * dim * (dim + 10) * kUp * 0x1p-157; }
/// Lemma 7: share of inexact products.
inline double dot_inexact(double dim) { return dim * kUp * kUnitSquared; }

/// Lemma 8: scale, relative to the score. Lemma 9: softcap, relative to the cap.
/// Lemma 10: one addition (bias, ALiBi), relative to the larger addend's magnitude sum.
/// Lemma 11: subtraction of the maximum, relative to |s| + |s - m|.
inline constexpr double kScale = 10 * kUnitSquared;
inline constexpr double kSoftcap = 0x1p-98;
inline constexpr double kAddition = 4 * kUnitSquared;
inline constexpr double kShift = 2 * kUnitSquared;
/// What underflow can add to a score that is not exactly zero, all stages together.
inline constexpr double kScoreUnderflow = 0x1p-1000;

/// The same for a weighted sum over one tile of a column that is not all zeros.
inline constexpr double kSumUnderflow = 0x1p-1000;

/// Theorem 13: relative error of exp_dd: kExpConstant + kExpSlope |x|, for -691 <= x <= 1.
inline constexpr double kExpConstant = 0x1p-101;
inline constexpr double kExpSlope = 0x1p-104;
inline constexpr double kExpLowest = -690;
/// exp(-690 + 2^-44) < 2^-995: the most a dropped weight can weigh (Lemma 14).
inline constexpr double kDroppedWeight = 0x1p-995;
/// Underflow of the low words of one tile of weights (Lemma 14).
inline constexpr double kTileUnderflow = 0x1p-1060;
/// Largest exponent error for which Lemma 14 linearises: beyond it the row is given up.
inline constexpr double kLargestExponentError = 0x1p-45;

/// Lemmas 15, 16: weighted sums over one tile of 64 keys and their accumulation, units of C.
inline constexpr double kTileFast = (64 * 64 + 3 * 64 + 130) * kUp * kUnitSquared;
inline constexpr double kTileTight = 330 * kUp * kUnitSquared;
/// Lemma 15b: roundings of the last slice over a tile of 64 keys, and of its addition.
inline constexpr double kLastSlice = 64 * 67 * kUp * kUnit;
/// Lemma 16: units of sum p|v| for every tile that is added.
inline constexpr double kAccumulate = 6 * kUp * kUnitSquared;
/// Lemma 17: division, relative to the quotient.
inline constexpr double kDivision = 12 * kUpFew * kUnitSquared;
/// Lemma 19: logarithm, absolute.
inline constexpr double kLogarithm = 0x1p-97;

/// Lemma 22: derivative of the softcap, beside the error of tanh; absolute.
inline constexpr double kFactor = 16 * kUnitSquared;
/// Lemma 23: a probability from its weight, beside the errors of its factors; relative.
inline constexpr double kProbability = 24 * kUnitSquared;
/// Lemma 23: the most a probability can be that was dropped or vanished.
inline constexpr double kDroppedProbability = 0x1p-990;
/// Lemma 24: one product of pairs, relative.
inline constexpr double kProduct = 8 * kUnitSquared;
/// Lemma 26: a sum over at most 16 rows and its addition to a pair, units of C; and the share of
/// the running sum, before and after.
inline double rows_fast(double rows) { return (rows * (rows + 5) + 2) * kUp * kUnitSquared; }
inline constexpr double kRunningSum = 2 * kUnitSquared;

}  // namespace ringproof::oracle::bounds
