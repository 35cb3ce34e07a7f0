#include "oracle/judge/certified_rows.hpp"

#include <algorithm>
#include <limits>

namespace ringproof::oracle {

void certified_rows(const Problem& problem, const RowSet& rows, const Chunk& chunk, unsigned bits,
                    const HeadTruth& head, RowBlock& scratch,
                    const std::function<void(std::int64_t, RowTruth&)>& visit) {
  for (std::int64_t first = chunk.first; first < chunk.last; first += HeadTruth::kRows) {
    const std::int64_t count = std::min<std::int64_t>(HeadTruth::kRows, chunk.last - first);
    HeadTruth::RowId ids[HeadTruth::kRows];
    for (std::int64_t n = 0; n < count; ++n) {
      const Row row = rows.row(first + n);
      ids[n] = {row.h, row.i};
    }
    if (bits == 0) head.rows({ids, static_cast<std::size_t>(count)}, scratch.data());
    for (std::int64_t n = 0; n < count; ++n) {
      RowTruth& row = scratch[static_cast<std::size_t>(n)];
      if (bits > 0) {
        row = RowTruth{};
        interval_row(problem, chunk.b, ids[n].h, ids[n].i, bits, row);
      }
      visit(first + n, row);
    }
  }
}

bool is_certified(const RowTruth& row) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!row.not_applicable.empty() || row.empty()) return true;
  if (!(row.lse.radius < kInfinity)) return false;
  return std::all_of(row.out.begin(), row.out.end(),
                     [](const Certified& x) { return x.radius < kInfinity; });
}

unsigned certify(const Problem& problem, RowTruth& row) {
  unsigned used = 0;
  for (unsigned bits = kFirstBits; !is_certified(row) && bits <= kMostBits; bits *= 2) {
    interval_row(problem, row.b, row.h, row.i, bits, row);
    used = bits;
  }
  return used;
}

}  // namespace ringproof::oracle
