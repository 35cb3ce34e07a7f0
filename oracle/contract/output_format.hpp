// The rounding of the output as the theorems and the power figures need it: relative and absolute
// error.
#pragma once

#include <cmath>

#include "oracle/contract/contract.hpp"

namespace ringproof::oracle {

struct OutputRounding {
  double u;    // of numbers in the normal range
  double eta;  // below it
};

inline OutputRounding output_rounding(const Contract::Out& out) {
  const Format& format = format_of(out.dtype);
  const bool nearest = out.round == RoundMode::rn;
  const double subnormal = nearest ? format.smallest() / 2 : format.smallest();
  // Half of the smallest binary64 subnormal is not a binary64 number.
  const double gradual = subnormal > 0 ? subnormal : format.smallest();
  return {nearest ? format.unit() : 2 * format.unit(),
          out.ftz ? std::ldexp(1.0, format.min_exponent) : gradual};
}

}  // namespace ringproof::oracle
