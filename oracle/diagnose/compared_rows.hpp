// The rows on which mistakes are compared with an answer: all judged rows of a short case, of a
// long one so many that the search ends, half of them refused ones.
#pragma once

#include <functional>
#include <vector>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

struct ComparedRows {
  std::vector<Row> rows;     // in order
  std::int64_t judged = 0;   // of so many
  std::int64_t refused = 0;  // of the rows, with a refused element; counted in a sample alone

  bool sampled() const { return static_cast<std::int64_t>(rows.size()) < judged; }
  /// Some of them, spread over all.
  std::vector<Row> spread(std::size_t most) const;
};

/// The rows that are compared at most: a form costs as much as the judgement of these.
std::int64_t most_compared_rows(const Problem&);

/// `field`: asked for only if the case is long. `always`: rows that must be among them.
ComparedRows compared_rows(const Problem&, const RowSet& judged, std::uint64_t seed,
                           const std::vector<Row>& always,
                           const std::function<const ErrorField&()>& field);

/// The verdict on out and LSE of these rows alone. `kinds`: what is judged; `elements`: how many
/// elements that were.
Verdict judge_rows(const Case&, const Contract&, const CheckOptions&,
                   const std::vector<AnswerKind>& kinds, const std::vector<Row>&,
                   std::int64_t& elements);

}  // namespace ringproof::oracle
