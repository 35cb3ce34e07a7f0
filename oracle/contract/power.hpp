// What one row could have refused, (42)-(44) of docs/contract.md.
#pragma once

#include <vector>

#include "oracle/contract/bound.hpp"
#include "oracle/contract/functional.hpp"

namespace ringproof::oracle {

/// Everything bound_row() knows about one row when it has its bounds.
struct BoundedRow {
  const RowBudget& row;
  const std::vector<FormSums>& forms;  // the first `form_count` hold the merge forms
  std::size_t form_count;
  const ValueRows& rows;
  const ColumnRange& range;
  const VirtualColumn& column;  // of the signs of the truth
  const RowTruth& truth;
  const double* out;               // [Dv] its values
  const std::vector<char>& exact;  // [Dv] columns under (26a)
};

/// Gain, zeros, mean and twice from the bounds of the elements and of the functional; (42), (44).
void element_power(const BoundedRow&, const RowBound&, double largest_lse, RowPower&);

struct BlockSums {
  std::vector<double> values;  // [blocks, Dv] sum over the block of p v
  std::vector<double> weight;  // [blocks] W_S
};
struct BlockScratch {
  BlockSums sums;
  std::vector<LeftOut> left;           // [merge forms]
  std::vector<double> without, signs;  // [Dv] o_S; g
  std::vector<std::int64_t> unsure;    // blocks that no column refuses
  VirtualColumn column;
};

/// The smallest aligned block length of which every block is refused if it is missing, by a column
/// or by the functional g = sgn(o_S - o), and its largest weight. (43)
void missing_blocks(const BoundedRow&, const RowBound&, std::int64_t first_key, BlockScratch&,
                    RowPower&);
/// Block lengths are powers of two from here on; on rows shorter than two such blocks, from one key
/// on.
constexpr std::int64_t kSmallestBlock = 64;

}  // namespace ringproof::oracle
