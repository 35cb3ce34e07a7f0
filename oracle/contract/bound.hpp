// The derived tolerance of one query row under a contract: theorems T1 (21)(22), T1R (23), T0 (26a),
// T1F (26) and T3 (25) of docs/contract.md, and what the row could have refused (42)-(44).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// What one row could have refused, section 10. Infinity or 1 mean "nothing".
struct RowPower {
  double gain = 0;  // smallest certified gain error, element or functional (the smaller)
  double missing_mass_lse = 1;  // (42)
  double missing_mass_out =
      1;  // (43): largest mass of the smallest refused block length; 1 if none or not computed
  std::int64_t missing_block = 0;  // that block length; 0: none
  std::int64_t zeros_differ = 0,
               zeros_pass = 0;  // elements where zeros differ from the truth / would pass
  std::int64_t mean_differ = 0, mean_pass = 0;    // the same for mean(V)
  std::int64_t twice_differ = 0, twice_pass = 0;  // the same for twice the answer
  bool functional_refuses_zeros = false, functional_refuses_mean = false,
       functional_refuses_twice = false;
};

struct RowBound {
  std::string not_applicable;  // the assumption that fails on this row (H1..H5), or empty
  std::vector<double> out;     // [Dv] e of (21)-(23),(26a), before the rounding of the output
  double lse = 0;              // Lam of (25), natural-log units; contains the storage rounding
  double functional =
      0;  // T1F (26), contains the output rounding: |sum_c sgn(o_c)(out_c - o_c)| <= functional
  RowPower power;
};

/// Reusable memory of one thread.
struct BoundScratch;

/// Bound of one row. `values`: row j of the key range is values + (j - row.keys.first) * stride, [Dv] columns.
/// `with_missing_blocks`: also compute (43), which costs one more pass over the values.
void bound_row(const Contract&, const Problem&, const RowTruth& row, const double* values,
               std::int64_t stride, bool with_missing_blocks, RowBound& bound);

}  // namespace ringproof::oracle
