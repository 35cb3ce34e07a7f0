// The table of exp_dd, computed from enclosures of 2^(i/64) so narrow that rounding them is
// unambiguous.
#include "oracle/truth/exp_table.hpp"

#include "oracle/truth/interval.hpp"

namespace ringproof::oracle {

const ExpTable& exp_table() {
  static const ExpTable table = [] {
    using Number = Interval<80>;
    const Number step = log(Number(2)) / 64;
    ExpTable values{};
    for (int i = 0; i < 64; ++i) {
      const Certified power = certify(Number(exp(Number(step * i))));
      values.entry[i][0] = power.hi;
      values.entry[i][1] = power.lo;
    }
    return values;
  }();
  return table;
}

}  // namespace ringproof::oracle
