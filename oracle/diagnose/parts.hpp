// Small functions over the parts of a row that all wrong combinations share. Private to
// combine.cpp, combine_online.cpp and combine_merge.cpp.
#pragma once

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// ln(e^a + e^b).
double add_logs(double a, double b);
/// Numbers of the parts that are there, in the order in which they come in.
std::vector<std::size_t> present_parts(const RowMaterial&, bool descending = false);
/// The largest error of an LSE or a maximum among the parts.
double stats_error(const RowMaterial&);
/// What a kernel may hand over as LSE beside an output that is put together wrongly.
void lse_forms(double computed, double error, ExpectedRow&);

}  // namespace ringproof::oracle
