// Solving and cutting rows (expected_rows.hpp).
#include "oracle/diagnose/expected_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/judge/certified_rows.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const double* values_of(const SolvedRows& solved, std::size_t n) {
  return solved.truth->values() + solved.rows[n].keys.first * solved.truth->values_stride();
}

ExpectedRow empty_row(EmptyRow demanded, std::size_t columns) {
  ExpectedRow row;
  const auto of = [&] {
    if (demanded == EmptyRow::zero) return Expected::value(0);
    return Expected::of_kind(demanded == EmptyRow::nan ? Expected::Kind::nan
                                                       : Expected::Kind::anything);
  };
  row.out.assign(columns, of());
  row.lse = {{"", demanded == EmptyRow::any ? Expected::of_kind(Expected::Kind::anything)
                                            : Expected::value(-kInfinity)}};
  return row;
}

/// Parts of the row's keys, in the setting's numbering.
std::vector<std::int64_t> parts_of(const Setting& setting, const SolvedRows& solved,
                                   std::size_t n) {
  const RowTruth& row = solved.rows[n];
  std::vector<std::int64_t> part_of;
  for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) {
    const KeySource& key = solved.change->keys[static_cast<std::size_t>(j)];
    part_of.push_back(setting.part(solved.change->rank, solved.queries[n], key.at));
  }
  return part_of;
}

}  // namespace

SolvedRows solve(const Subject& subject, const Setting& setting, std::int64_t b, std::int64_t h,
                 std::int64_t rank, const std::vector<std::int64_t>& queries, Precision precision) {
  SolvedRows solved{.change = std::make_unique<HeadChange>(subject.problem(), b, h, rank),
                    .head = nullptr,
                    .truth = nullptr,
                    .contract = subject.contract,
                    .queries = queries,
                    .rows = std::vector<RowTruth>(queries.size()),
                    .bounds = std::vector<RowBound>(queries.size())};
  if (setting.change) setting.change(*solved.change);
  if (setting.contract) setting.contract(solved.contract);
  solved.head = std::make_unique<MutatedHead>(build(*solved.change, queries));
  const Problem& problem = solved.head->problem;
  solved.truth = std::make_unique<HeadTruth>(problem, 0, 0, precision);
  for (std::size_t first = 0; first < queries.size(); first += HeadTruth::kRows) {
    const std::size_t count = std::min<std::size_t>(HeadTruth::kRows, queries.size() - first);
    HeadTruth::RowId ids[HeadTruth::kRows];
    for (std::size_t n = 0; n < count; ++n) ids[n] = {0, static_cast<std::int64_t>(first + n)};
    solved.truth->rows({ids, count}, solved.rows.data() + first);
  }
  for (std::size_t n = 0; n < queries.size(); ++n) {
    certify(problem, solved.rows[n]);
    if (!solved.rows[n].not_applicable.empty() || solved.rows[n].empty()) continue;
    bound_row(solved.contract, problem, solved.rows[n], values_of(solved, n),
              solved.truth->values_stride(), false, solved.bounds[n]);
  }
  return solved;
}

RowSolver::Entry* RowSolver::entry(const Place& place) {
  const std::lock_guard lock(mutex_);
  if (const auto known = kept_.find(place); known != kept_.end()) return &known->second;
  const Problem& p = subject_.problem();
  const std::int64_t numbers = p.keys * (p.head_dim + p.value_dim);
  if (!kept_.empty() && numbers_ + numbers > kMostNumbers) return nullptr;
  numbers_ += numbers;
  return &kept_[place];
}

std::shared_ptr<const SolvedRows> RowSolver::solve(const Setting& setting, std::int64_t b,
                                                   std::int64_t h, std::int64_t rank,
                                                   const std::vector<std::int64_t>& queries) {
  const auto solved = [&] {
    return std::make_shared<const SolvedRows>(
        oracle::solve(subject_, setting, b, h, rank, queries, precision_));
  };
  if (!setting.leaves_problem()) return solved();
  Entry* const kept = entry({b, h, rank, queries});
  if (kept == nullptr) return solved();
  std::call_once(kept->once, [&] { kept->rows = solved(); });
  return kept->rows;
}

ExpectedRow unchanged_row(const SolvedRows& solved, std::size_t n) {
  const RowTruth& row = solved.rows[n];
  const auto columns = static_cast<std::size_t>(solved.head->problem.value_dim);
  ExpectedRow expected;
  if (!row.not_applicable.empty()) {  // a query or a key that is no number spoils the whole row
    expected.out.assign(columns, Expected::of_kind(Expected::Kind::not_finite));
    expected.lse = {{"", Expected::of_kind(Expected::Kind::not_finite)}};
    return expected;
  }
  if (row.empty()) {
    expected = empty_row(solved.head->problem.spec.empty_row, columns);
  } else {
    for (std::size_t c = 0; c < columns; ++c) {
      expected.out.push_back({Expected::Kind::ball, row.out[c], solved.bounds[n].out[c]});
    }
    expected.lse = {{"", {Expected::Kind::ball, row.lse, solved.bounds[n].lse}}};
  }
  if (solved.head->poison.empty()) return expected;
  for (std::size_t c = 0; c < columns; ++c) {
    if (solved.head->poisoned(static_cast<std::int64_t>(n), static_cast<std::int64_t>(c), false)) {
      expected.out[c] = Expected::of_kind(Expected::Kind::not_finite);
    }
  }
  return expected;
}

std::vector<ExpectedRow> expected_rows(const Family& family, const SolvedRows& solved,
                                       std::size_t n, std::string& reason,
                                       const std::function<bool(std::size_t)>& asked) {
  const Setting& setting = family.setting;
  const RowTruth& row = solved.rows[n];
  reason = solved.bounds[n].not_applicable;
  if (!reason.empty()) return {};
  const bool whole = !row.not_applicable.empty() || (row.empty() && !setting.part);
  PartialRows parts(solved.contract, solved.head->problem);
  if (setting.part && row.not_applicable.empty() && !row.empty()) {
    const std::int64_t count = setting.parts + (setting.sink_apart ? 1 : 0);
    reason = parts.cut(row, values_of(solved, n), solved.truth->values_stride(),
                       parts_of(setting, solved, n), count, setting.sink_apart ? setting.parts : 0);
    if (!reason.empty()) return {};
  }
  const RowMaterial material{.change = *solved.change,
                             .head = *solved.head,
                             .contract = solved.contract,
                             .n = static_cast<std::int64_t>(n),
                             .i = solved.queries[n],
                             .truth = row,
                             .bound = solved.bounds[n],
                             .parts = parts.parts(),
                             .values = values_of(solved, n),
                             .stride = solved.truth->values_stride()};
  const ExpectedRow unchanged = unchanged_row(solved, n);
  std::vector<ExpectedRow> expected(family.mutants.size());
  for (std::size_t m = 0; m < expected.size(); ++m) {
    if (asked && !asked(m)) continue;
    expected[m] = unchanged;
    const bool skip = !row.not_applicable.empty() || (whole && setting.part);
    if (family.mutants[m].expect && !skip) family.mutants[m].expect(material, expected[m]);
  }
  return expected;
}

}  // namespace ringproof::oracle
