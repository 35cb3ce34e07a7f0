// From a family of mistakes to what each of them would return on some rows: truth and bound of the
// changed problem, the rows cut into parts, and every mutant's own last step.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
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

/// Solves rows for one family after the other. What a setting leaves as it is costs only once: most
/// mistakes are in the last step, and preparing a head of many keys takes longer than a row of it.
/// Shared by threads.
class RowSolver {
 public:
  /// The subject must outlive it.
  RowSolver(const Subject& subject, Precision precision)
      : subject_(subject), precision_(precision) {}

  /// As solve(); rows that are kept are those that were asked for first, until so many numbers of
  /// keys and values are held.
  std::shared_ptr<const SolvedRows> solve(const Setting&, std::int64_t b, std::int64_t h,
                                          std::int64_t rank,
                                          const std::vector<std::int64_t>& queries);
  static constexpr std::int64_t kMostNumbers = std::int64_t{1} << 25;

 private:
  struct Entry {
    std::once_flag once;
    std::shared_ptr<const SolvedRows> rows;
  };
  using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;

  Entry* entry(const Place&);

  const Subject& subject_;
  Precision precision_;
  std::mutex mutex_;
  std::map<Place, Entry> kept_;
  std::int64_t numbers_ = 0;  // of keys and values of the entries
};

/// What row n is without a mistake beyond the setting.
ExpectedRow unchanged_row(const SolvedRows&, std::size_t n);

/// What every mutant of the family returns on row n, [mutants]; nothing for those that are not
/// `asked` for. Empty, with a reason, if the theory says nothing about such a row.
std::vector<ExpectedRow> expected_rows(const Family&, const SolvedRows&, std::size_t n,
                                       std::string& reason,
                                       const std::function<bool(std::size_t)>& asked = {});

}  // namespace ringproof::oracle
