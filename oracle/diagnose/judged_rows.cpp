// All rows, a sample, or edges first (judged_rows.hpp).
#include "oracle/diagnose/judged_rows.hpp"

#include <algorithm>

#include "oracle/judge/edge_rows.hpp"

namespace ringproof::oracle {

RowSet judged_rows(const Problem& problem, const CheckOptions& options, const Report& report,
                   std::int64_t most) {
  const RowSet all(problem);
  if (options.budget || (options.rows && options.edges_first)) {
    std::vector<std::int64_t> numbers = edges_first(problem, options.seed);
    const std::int64_t judged = std::min({report.rows_judged, all.size(), most});
    numbers.resize(static_cast<std::size_t>(judged));
    std::sort(numbers.begin(), numbers.end());
    return {problem, numbers};
  }
  const std::int64_t count = std::min({options.rows.value_or(all.size()), all.size(), most});
  return count < all.size() ? RowSet(problem, count, options.seed) : all;
}

}  // namespace ringproof::oracle
