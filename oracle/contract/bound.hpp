// The derived tolerance of one query row under a contract: theorems T1 (21)(22), T1R (23), T0
// (26a), T1F (26) and T3 (25) of docs/contract.md, and what the row could have refused (42)-(44).
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
  double gain = HUGE_VAL;          // smallest certified gain error, of an element or the functional
  double missing_mass_lse = 1;     // (42)
  double missing_mass_out = 1;     // (43): largest mass of a block of missing_block keys
  std::int64_t missing_block = 0;  // smallest length of which every block is refused; 0: none
  // Elements where an answer of zeros, of mean(V), of twice the answer differs from the truth, and
  // those of them where it might pass. (44)
  std::int64_t zeros_differ = 0, zeros_pass = 0;
  std::int64_t mean_differ = 0, mean_pass = 0;
  std::int64_t twice_differ = 0, twice_pass = 0;
  bool functional_refuses_zeros = false;
  bool functional_refuses_mean = false;
  bool functional_refuses_twice = false;
};

struct RowBound {
  std::string not_applicable;  // the assumption that fails on this row (H1), or the truth's reason
  std::vector<double> out;     // [Dv] e of (21)-(23),(26a), before the rounding of the output
  double lse = 0;              // Lam of (25), natural-log units; contains the storage rounding
  double functional = 0;  // (26): bound of |sum_c sgn(o_c)(out_c - o_c)|, output rounding included
  RowPower power;
};

/// Bound of one row: the elementwise maximum over the contract's alternatives. `values`: row j of
/// the key range is values + (j - row.keys.first) * stride, [Dv] columns; what is invisible is not
/// read. `with_missing_blocks`: also compute (43), which costs one more pass over the values. An
/// empty row has bounds 0, it is decided by table. Thread-safe; throws std::runtime_error if a
/// bound is not a number, which is an error of the oracle. No allocation once a thread has seen its
/// longest row.
void bound_row(const Contract&, const Problem&, const RowTruth& row, const double* values,
               std::int64_t stride, bool with_missing_blocks, RowBound& bound);

}  // namespace ringproof::oracle
