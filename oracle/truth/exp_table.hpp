// The constants of exp_dd. tests/unit/truth compares each with MPFR.
#pragma once

namespace ringproof::oracle {

/// 64 / ln 2, to nearest.
inline constexpr double kInverseLn2Over64 = 0x1.71547652b82fep+6;
/// ln2/64 in three words: 33 bits, 33 bits, 53 bits, so that products of the first two with |k| <
/// 2^17 are exact. Their sum is below ln2/64 by less than 2^-128.
inline constexpr double kLn2Over64[3] = {0x1.62e42ffp-7, -0x1.718432a2p-41, 0x1.3c7673007e5edp-75};

/// 1/n! to nearest, and what is left of it, to nearest (needed for 3 <= n <= 5 only).
inline constexpr double kInverseFactorial[12] = {1,
                                                 1,
                                                 0.5,
                                                 0x1.5555555555555p-3,
                                                 0x1.5555555555555p-5,
                                                 0x1.1111111111111p-7,
                                                 0x1.6c16c16c16c17p-10,
                                                 0x1.a01a01a01a01ap-13,
                                                 0x1.a01a01a01a01ap-16,
                                                 0x1.71de3a556c734p-19,
                                                 0x1.27e4fb7789f5cp-22,
                                                 0x1.ae64567f544e4p-26};
inline constexpr double kInverseFactorialLow[6] = {
    0, 0, 0, 0x1.5555555555555p-57, 0x1.5555555555555p-59, 0x1.1111111111111p-63};

/// 2^(i/64) = entry[i][0] + entry[i][1], each to nearest: they differ by at most 2^-106.
struct ExpTable {
  alignas(64) double entry[64][2];
};
/// Computed once, from intervals; the same in every process.
const ExpTable& exp_table();

}  // namespace ringproof::oracle
