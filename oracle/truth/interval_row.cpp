// A row from interval arithmetic (interval_scores.hpp). Slow (microseconds a product); rows come
// here only when double-double cannot decide them.
#include "oracle/truth/interval_scores.hpp"

namespace ringproof::oracle {

void interval_row(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
                  unsigned bits, RowTruth& row) {
  RowInputs inputs;
  const std::vector<std::uint8_t> finite =
      finite_keys(problem, b, problem.kv_head(h), visible_range(problem, b, i));
  if (!begin_row(problem, b, h, i, finite.data(), row, inputs)) return;
  with_interval(bits, [&]<class Number>() {
    IntervalRow<Number> result;
    compute_interval_row(problem, inputs.visible, row, result);
  });
}

}  // namespace ringproof::oracle
