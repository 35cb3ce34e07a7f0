#include "tests/unit/truth/gradient_rows.hpp"

#include <algorithm>

namespace ringproof::test {

using namespace oracle;

namespace {

/// Rows [first, last) of the ids of one KV head; adds to `sums`.
void add_rows(const Problem& problem, const Upstream& upstream, const HeadGradients& head,
              std::int64_t b, std::span<const HeadTruth::RowId> ids, bool complete,
              Backward& result, GradientSums& sums) {
  std::vector<RowTruth> rows(ids.size());
  std::vector<RowGradients> gradients(ids.size());
  head.rows(ids, rows.data(), gradients.data(), &sums);
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (gradients[n].failed) {
      ++result.failed;
      for (unsigned bits = 128; complete && gradients[n].failed && bits <= 8192; bits *= 2) {
        interval_row_gradients(problem, upstream, b, ids[n].h, ids[n].i, bits, rows[n],
                               gradients[n], &sums);
      }
    }
    result.rows.push_back(std::move(rows[n]));
    result.gradients.push_back(std::move(gradients[n]));
  }
}

}  // namespace

Backward backward(const Problem& problem, const Upstream& upstream, Precision precision,
                  std::int64_t at_once, std::int64_t group_rows, bool complete) {
  Backward result;
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t kv = 0; kv < problem.kv_heads; ++kv) {
      const HeadTruth forward(problem, b, kv, precision);
      const HeadGradients head(problem, upstream, forward);
      std::vector<HeadTruth::RowId> ids;
      for (std::int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
        for (std::int64_t i = 0; i < problem.queries; ++i) ids.push_back({h, i});
      }
      const auto all = static_cast<std::int64_t>(ids.size());
      result.sums.emplace_back(problem);
      for (std::int64_t group = 0; group < all; group += group_rows) {
        GradientSums sums(problem);
        const std::int64_t end = std::min(all, group + group_rows);
        for (std::int64_t first = group; first < end; first += at_once) {
          const std::int64_t count = std::min(at_once, end - first);
          add_rows(problem, upstream, head, b,
                   std::span(ids).subspan(static_cast<std::size_t>(first),
                                          static_cast<std::size_t>(count)),
                   complete, result, sums);
        }
        result.sums.back().merge(sums);
      }
    }
  }
  return result;
}

}  // namespace ringproof::test
