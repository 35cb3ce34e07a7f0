#include "oracle/judge/equal_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ringproof::oracle {

namespace {

bool scores_are_zero(const RowTruth& row) {
  if (row.empty() || row.has_sink || !row.bias.empty() || !row.alibi.empty()) return false;
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    // The absolute dot product is an upper bound, so that 0 is 0.
    const bool visible = row.score[n] > -std::numeric_limits<double>::infinity();
    if (visible && row.abs_dot[n] != 0) return false;
  }
  return true;
}

/// Sums of columns as two words each, with a mark where a third would have been needed.
struct ColumnSums {
  std::vector<double> high, low, lost;  // [Dv]
};

ColumnSums sum_columns(const RowTruth& row, const double* values, std::int64_t stride) {
  const std::size_t columns = row.out.size();
  ColumnSums sums{std::vector<double>(columns), std::vector<double>(columns),
                  std::vector<double>(columns)};
  double* const high = sums.high.data();
  double* const low = sums.low.data();
  double* const lost = sums.lost.data();
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    if (row.score[n] == -std::numeric_limits<double>::infinity()) continue;
    const double* value = values + static_cast<std::int64_t>(n) * stride;
    for (std::size_t c = 0; c < columns; ++c) {
      // TwoSum twice: the error of the sum into the low word, the error of that into the mark.
      const double sum = high[c] + value[c];
      const double part = sum - high[c];
      const double error = (high[c] - (sum - part)) + (value[c] - part);
      const double low_sum = low[c] + error;
      const double low_part = low_sum - low[c];
      lost[c] += std::abs((low[c] - (low_sum - low_part)) + (error - low_part));
      high[c] = sum;
      low[c] = low_sum;
    }
  }
  return sums;
}

/// (high + low) / count, correctly to about 2^-104; radius 0 where the quotient is exact.
Certified quotient(double high, double low, double count) {
  const double hi = high / count;
  const double rest = std::fma(-hi, count, high);  // exact: the remainder of a division
  const double remainder = rest + low;
  if (remainder == 0) return {hi, 0, 0};
  const double lo = remainder / count;
  const double sum = hi + lo, part = sum - hi;
  return {sum, (hi - (sum - part)) + (lo - part), std::abs(lo) * 0x1p-50};
}

}  // namespace

bool sharpen_equal_scores(RowTruth& row, const double* values, std::int64_t stride) {
  if (!scores_are_zero(row)) return false;
  const ColumnSums sums = sum_columns(row, values, stride);
  const auto in_range = [](double x) {  // neither overflow nor a remainder that underflows
    return x == 0 || (std::abs(x) > 0x1p-900 && std::abs(x) < 0x1p900);
  };
  for (std::size_t c = 0; c < sums.high.size(); ++c) {
    if (sums.lost[c] != 0 || !in_range(sums.high[c])) return false;
  }
  for (std::size_t c = 0; c < sums.high.size(); ++c) {
    row.out[c] = quotient(sums.high[c], sums.low[c], static_cast<double>(row.visible));
  }
  return true;
}

}  // namespace ringproof::oracle
