// From a family of mistakes to what each of them would return on some rows: truth and bound of the
// changed problem, the rows cut into parts, and every mutant's own last step.
#pragma once

#include <memory>
#include <vector>

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// Rows of one head of a changed problem, solved.
struct SolvedRows {
  std::unique_ptr<HeadChange> change;
  std::unique_ptr<MutatedHead> head;
  std::unique_ptr<HeadTruth> truth;
  Contract contract;
  std::vector<std::int64_t> queries;
  std::vector<RowTruth> rows;    // [queries], certified
  std::vector<RowBound> bounds;  // [queries]
};

/// Solves queries of head (b, h), all owned by `rank`, in the problem that the setting makes of it.
SolvedRows solve(const Subject&, const Setting&, std::int64_t b, std::int64_t h, std::int64_t rank,
                 const std::vector<std::int64_t>& queries, Precision);

/// What row n is without a mistake beyond the setting.
ExpectedRow unchanged_row(const SolvedRows&, std::size_t n);

/// What every mutant of the family returns on row n, [mutants]; nothing for those that are not
/// `asked` for. Empty, with a reason, if the theory says nothing about such a row.
std::vector<ExpectedRow> expected_rows(const Family&, const SolvedRows&, std::size_t n,
                                       std::string& reason,
                                       const std::function<bool(std::size_t)>& asked = {});

}  // namespace ringproof::oracle
