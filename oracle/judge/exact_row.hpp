// Is an element of out exactly this number? What decides a tie, which no interval can decide.
// The weights exp(s) of different scores are linearly independent over the algebraic numbers
// (Lindemann and Weierstrass), and the scores are algebraic where no softcap is: so
// sum_j exp(s_j) (v_j - z) vanishes if and only if the sum of v_j - z vanishes for the keys of each
// score by itself. With a softcap the condition still suffices. Exact arithmetic on the stored bits
// throughout; no truth and no radius enters.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/judge/dyadic.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// The keys of one row, grouped by equal scores.
class ExactRow {
 public:
  /// The row is one that is neither empty nor not applicable; its visible keys are those whose
  /// score is not -infinity.
  ExactRow(const Problem&, const RowTruth&);

  /// True only if the exact out of this column is `value`; without a softcap exactly then.
  bool column_is(std::int64_t column, const Dyadic& value) const;

 private:
  struct Group {
    std::vector<std::int64_t> keys;
    bool sink = false;  // one more member, with the value 0
  };

  const Problem& problem_;
  std::int64_t b_, kv_head_;
  std::vector<Group> groups_;
};

}  // namespace ringproof::oracle
