// T0, (26a) (exact_columns.hpp).
#include "oracle/contract/exact_columns.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// g of the coarsest grid 2^g that holds x; for finite x != 0.
int grid_exponent(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & 0xfffffffffffff;
  // A subnormal has the exponent of the smallest normal numbers and no hidden bit.
  const std::uint64_t significand = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  return std::max(exponent, 1) - 1075 + std::countr_zero(significand);
}

}  // namespace

bool sums_are_exact(const RowBudget& row) {
  const Contract& c = *row.contract;
  int exponent = 0;
  const bool power_of_two = std::frexp(c.p.scale, &exponent) == 0.5;
  // A normalised P is 1/n, not 1, and a value rounded on load may leave its grid.
  return row.equal_scores && c.p.normalized == Tri::no && power_of_two && c.inputs.load_u_v == 0 &&
         exact_where_representable(c.pv.acc);
}

void columns_on_grid(const Contract& c, const ValueRows& rows, const ColumnRange& range,
                     std::vector<char>& exact) {
  int digits = accumulator_digits(c.pv.acc);
  if (c.pv.u > 0) digits = std::min(digits, static_cast<int>(-std::log2(c.pv.u)));
  const auto columns = static_cast<std::size_t>(rows.columns);
  std::vector<int> grid(columns, 1024);
  for (std::int64_t k = 0; k < rows.visible; ++k) {
    const double* v = rows.values + rows.index[k] * rows.stride;
    for (std::size_t column = 0; column < columns; ++column) {
      if (v[column] != 0) grid[column] = std::min(grid[column], grid_exponent(v[column]));
    }
  }
  exact.assign(columns, 0);
  for (std::size_t column = 0; column < columns; ++column) {
    const double sum = range.abs_sum[column];
    // Below twice eta the format of the sums has no numbers, so the grid must not go there.
    const bool fits = sum < std::ldexp(1.0, digits + grid[column]) &&
                      std::ldexp(1.0, grid[column]) >= 2 * c.pv.eta;
    exact[column] = sum == 0 || fits;
  }
}

double exact_column_bound(const RowBudget& row, double sum, double out) {
  if (sum == 0) return 0;
  const Contract& c = *row.contract;
  return std::expm1(row.division) * std::fabs(out) + c.finish.roundings * c.pv.eta;
}

}  // namespace ringproof::oracle
