// All rows of a problem through the fast backward pass, as a judge walks them: for tests.
#pragma once

#include <deque>
#include <vector>

#include "oracle/truth/backward.hpp"

namespace ringproof::test {

/// Rows in the order (b, h, i); sums of KV head (b, kv) at b * kv_heads + kv.
struct Backward {
  std::vector<oracle::RowTruth> rows;
  std::vector<oracle::RowGradients> gradients;
  std::vector<oracle::GradientSums> sums;
  long failed = 0;  // rows that went to intervals
};

/// `at_once` rows a call, a new group of sums every `group_rows` rows, merged in order. `complete`:
/// rows that double-double could not certify are completed by intervals.
Backward backward(const oracle::Problem&, const oracle::Upstream&, oracle::Precision,
                  std::int64_t at_once, std::int64_t group_rows, bool complete = true);

}  // namespace ringproof::test
