// T0 of docs/contract.md, (26a): rows of equal scores whose columns are sums of few bits.
#pragma once

#include <vector>

#include "oracle/contract/row_budget.hpp"
#include "oracle/contract/weight_loops.hpp"

namespace ringproof::oracle {

/// True if on this row every kernel of the contract sums P v exactly, given columns on a grid.
bool sums_are_exact(const RowBudget&);
/// For every column: it lies on a grid 2^g with sum |v| < 2^(digits + g), so that every sum is
/// exact.
void columns_on_grid(const Contract&, const ValueRows&, const ColumnRange&,
                     std::vector<char>& exact);
/// (26a): 0 for a column whose (exact) sum is zero.
double exact_column_bound(const RowBudget&, double sum, double out);

}  // namespace ringproof::oracle
