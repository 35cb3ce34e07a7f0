// The search (diagnose.hpp): every form of every class against the worst row first, then against
// all rows while nothing refutes it.
#include "oracle/diagnose/diagnose.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "oracle/contract/ring_partition.hpp"
#include "oracle/diagnose/arithmetic.hpp"
#include "oracle/diagnose/catalogue.hpp"
#include "oracle/diagnose/compared_rows.hpp"
#include "oracle/diagnose/comparison.hpp"
#include "oracle/diagnose/error_field.hpp"
#include "oracle/diagnose/expected_rows.hpp"
#include "oracle/diagnose/gradient_search.hpp"
#include "oracle/diagnose/judged_rows.hpp"

namespace ringproof::oracle {

namespace {

/// Rows that are solved together: enough to share what a head costs.
constexpr std::size_t kRowsTogether = 64;

/// Rows of one head that one rank owns.
struct RowGroup {
  std::int64_t b = 0, h = 0, rank = 0;
  std::vector<std::int64_t> queries;
};

class FamilySearch {
 public:
  FamilySearch(const Subject& subject, const JudgedAnswers& answers, Precision precision)
      : answers_(answers), solver_(subject, precision) {}

  /// The elements whose rows decide nearly everything.
  void set_first(const std::vector<RefusedElement>& elements) {
    worst_ = elements;
    for (const RefusedElement& element : elements) first_.push_back(element.row);
  }
  void set_all(const std::vector<Row>& rows) { all_ = rows; }

  /// Empty, with a reason, if the theory says nothing about some row of the changed problem.
  std::vector<Comparison> search(const Family& family, std::string& reason) {
    try {
      return search_rows(family, reason);
    } catch (const std::runtime_error& error) {  // a mistake may leave the range of every number
      reason = error.what();
      return {};
    }
  }

 private:
  enum class Which { both, out, lse };

  std::vector<Comparison> search_rows(const Family& family, std::string& reason) {
    std::vector<Comparison> comparisons(family.mutants.size());
    for (const std::vector<Row>* rows : {&first_, &all_}) {
      if (rows == &all_) {  // the first rows are among them: count every element once
        for (std::size_t m = 0; m < comparisons.size(); ++m) {
          Comparison& one = comparisons[m];
          const bool tells = one.tells_from_truth() || family.mutants[m].open;
          if (one.refuted() || !tells) {
            one.refute();
          } else {
            one = Comparison();
          }
        }
      }
      compare(family, *rows, comparisons, reason);
      if (!reason.empty()) return {};
      if (std::all_of(comparisons.begin(), comparisons.end(),
                      [](const Comparison& one) { return one.refuted(); })) {
        break;
      }
    }
    return comparisons;
  }

  void compare(const Family& family, const std::vector<Row>& rows,
               std::vector<Comparison>& comparisons, std::string& reason) {
    const Setting& setting = family.setting;
    if (!setting.out_from && !setting.lse_from) {
      return compare(family, rows, {}, Which::both, comparisons, reason);
    }
    if (answers_.out != nullptr) {
      compare(family, rows, setting.out_from, Which::out, comparisons, reason);
    }
    if (answers_.lse != nullptr && reason.empty()) {
      compare(family, rows, setting.lse_from, Which::lse, comparisons, reason);
    }
  }

  /// `from`: the row whose answer is stored in a row.
  void compare(const Family& family, const std::vector<Row>& rows,
               const std::function<Row(const Row&)>& from, Which which,
               std::vector<Comparison>& comparisons, std::string& reason) {
    RowGroup group;
    std::vector<Row> stored;
    const auto flush = [&] {
      if (!stored.empty() && reason.empty()) {
        compare_group(family, group, stored, which, comparisons, reason);
      }
      stored.clear();
      group.queries.clear();
    };
    for (const Row& row : rows) {
      if (!reason.empty()) return;
      const Row source = from ? from(row) : row;
      if (source.i < 0) {  // never written: anything may be there
        for (Comparison& one : comparisons) one.leave_open(row, which == Which::lse);
        continue;
      }
      const std::int64_t rank = family.setting.rank ? family.setting.rank(source.b, source.i) : 0;
      if (source.b != group.b || source.h != group.h || rank != group.rank ||
          stored.size() == kRowsTogether) {
        flush();
        if (std::all_of(comparisons.begin(), comparisons.end(),
                        [](const Comparison& one) { return one.refuted(); })) {
          return;
        }
      }
      group.b = source.b;
      group.h = source.h;
      group.rank = rank;
      group.queries.push_back(source.i);
      stored.push_back(row);
    }
    flush();
  }

  void compare_group(const Family& family, const RowGroup& group, const std::vector<Row>& stored,
                     Which which, std::vector<Comparison>& comparisons, std::string& reason) {
    const auto rows = solver_.solve(family.setting, group.b, group.h, group.rank, group.queries);
    const SolvedRows& solved = *rows;
    for (std::size_t n = 0; n < stored.size(); ++n) {
      const std::vector<ExpectedRow> expected = expected_rows(
          family, solved, n, reason, [&](std::size_t m) { return !comparisons[m].refuted(); });
      if (!reason.empty()) return;
      for (std::size_t m = 0; m < comparisons.size(); ++m) {
        if (comparisons[m].refuted()) continue;
        if (answers_.out != nullptr && which != Which::lse) {
          comparisons[m].add_out(answers_, stored[n], expected[m]);
        }
        if (answers_.lse != nullptr && which != Which::out) {
          comparisons[m].add_lse(answers_, stored[n], expected[m], solved.contract);
        }
        for (const RefusedElement& worst : worst_) {
          const bool here = worst.row.b == stored[n].b && worst.row.h == stored[n].h &&
                            worst.row.i == stored[n].i &&
                            which != (worst.of_lse ? Which::out : Which::lse);
          if (here) {
            comparisons[m].compare_with_truth(answers_, worst, expected[m], solved.contract);
          }
        }
      }
    }
  }

  const JudgedAnswers& answers_;
  RowSolver solver_;
  std::vector<RefusedElement> worst_;
  std::vector<Row> first_, all_;
};

/// The worst elements: they differ most from the truth, and so from most mistakes.
std::vector<RefusedElement> worst_elements(const Report& report) {
  std::vector<RefusedElement> elements;
  for (const AnswerReport& answer : report.answers) {
    if (answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse) continue;
    const auto& worst = answer.tally.worst_element;
    if (!worst || worst->decision != Decision::fail) continue;
    elements.push_back({answer.kind == AnswerKind::lse, worst->row, worst->column, worst->exact});
  }
  return elements;
}

/// The rows of these elements, and those of the worst refused sums of rows.
std::vector<Row> worst_rows(const std::vector<RefusedElement>& elements, const Report& report) {
  std::vector<Row> rows;
  for (const RefusedElement& element : elements) rows.push_back(element.row);
  for (const AnswerReport& answer : report.answers) {
    const TensorTally& tally = answer.tally;
    if (answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse) continue;
    if (tally.functional_failed > 0) rows.push_back(tally.worst_functional->row);
  }
  return rows;
}

/// Calls work(n) for 0 <= n < count from several threads.
void for_each(std::size_t count, const WalkOptions& options,
              const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::int64_t done = 0;
  const auto visit = [&] {
    for (std::size_t n = next++; n < count; n = next++) {
      try {
        work(n);
        const std::lock_guard lock(mutex);
        ++done;
        if (options.progress) options.progress(done, static_cast<std::int64_t>(count));
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t worker = 1; worker < worker_count(options); ++worker) pool.emplace_back(visit);
    visit();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Rows in which the truth's boxes refuse some element.
class RefusedRows {
 public:
  explicit RefusedRows(const ErrorField& field) {
    for (std::size_t n = 0; n < field.rows.size(); ++n) {
      const Row& row = field.rows[n];
      const std::tuple place(row.b, row.h, row.i);
      bool judged = false, refused = false;
      for (std::int64_t c = 0; !field.out.empty() && c < field.columns; ++c) {
        judged = judged || !std::isnan(field.at(n, c).ratio);
        refused = refused || field.at(n, c).refused;
      }
      if (judged && !refused) right_out_.insert(place);
      const bool lse = !field.lse.empty() && !std::isnan(field.lse[n].ratio);
      if (lse && !field.lse[n].refused) right_lse_.insert(place);
    }
  }

  /// True if every row that the mistake leaves to chance is wrong somewhere. What was never written
  /// is hardly ever right, so a form that leaves right rows open explains nothing.
  bool confirm(const Comparison& one) const {
    const auto wrong = [](const std::vector<Row>& rows, const auto& right) {
      return std::none_of(rows.begin(), rows.end(), [&](const Row& row) {
        return right.count({row.b, row.h, row.i}) != 0;
      });
    };
    return wrong(one.open_out(), right_out_) && wrong(one.open_lse(), right_lse_);
  }

 private:
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> right_out_, right_lse_;
};

std::optional<double> guessed_gain(const Report& report) {
  const AnswerReport* out = report.find(AnswerKind::out);
  if (out == nullptr || out->tally.failed < kFewestForFactor) return std::nullopt;
  const Element& worst = *out->tally.worst_element;
  if (worst.exact == 0) return std::nullopt;
  return worst.answer / worst.exact;
}

std::string why_not(const Report& report) {
  std::int64_t refused = 0, functionals = 0;
  for (const AnswerReport& answer : report.answers) {
    if (answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse) continue;
    refused += answer.tally.failed;
    functionals += answer.tally.functional_failed;
  }
  if (refused > 0) return "";
  return functionals > 0 ? "only the sums of rows are refused, no element"
                         : "no element of out or lse is refused";
}

/// The search among other functions, on its way to a diagnosis.
void add_functions(const Subject& subject, const CheckOptions& options, const Report& report,
                   const std::vector<RefusedElement>& worst, const ComparedRows& compared,
                   const std::function<const ErrorField&()>& field, Diagnosis& diagnosis) {
  const Families families = mutant_catalogue(subject);
  const JudgedAnswers answers = judged_answers(subject.input, subject.contract, report);
  FamilySearch search(subject, answers, options.walk.precision);
  search.set_first(worst);
  search.set_all(compared.rows);
  std::vector<std::vector<Comparison>> results(families.size());
  std::vector<std::string> reasons(families.size());
  for_each(families.size(), options.walk,
           [&](std::size_t n) { results[n] = search.search(families[n], reasons[n]); });
  std::optional<RefusedRows> refused;
  const auto leaves_right_rows_open = [&](const Comparison& one) {
    if (one.open_out().empty() && one.open_lse().empty()) return false;
    if (!refused) refused.emplace(field());
    return !refused->confirm(one);
  };
  for (std::size_t n = 0; n < families.size(); ++n) {
    const auto& mutants = families[n].mutants;
    if (!reasons[n].empty()) diagnosis.without_theory += static_cast<std::int64_t>(mutants.size());
    for (std::size_t m = 0; m < results[n].size(); ++m) {
      const Comparison& one = results[n][m];
      const bool unwritten = mutants[m].open || families[n].setting.out_from;
      const bool tells = one.tells_from_truth() || mutants[m].open;
      if (one.refuted() || !tells || (unwritten && leaves_right_rows_open(one))) {
        ++diagnosis.refuted;
      } else if (one.elements() > one.open()) {
        diagnosis.explanations.push_back({mutants[m].id, mutants[m].also, mutants[m].words,
                                          one.lse_words(), one.elements(), one.open()});
      }
    }
  }
}

}  // namespace

Diagnosis diagnose(const Case& input, const Contract& contract, const CheckOptions& options,
                   const Report& report, const ErrorField* known) {
  Diagnosis diagnosis;
  diagnosis.not_evaluated = why_not(report);
  const std::int64_t ranks = input.problem.spec.ranks.value_or(contract.partials.count);
  const Subject subject{input, contract, ranks, guessed_gain(report)};
  ErrorField own;
  const auto field = [&]() -> const ErrorField& {
    if (known == nullptr) {
      CheckOptions silent = options;
      silent.walk.progress = {};
      own = error_field(input, contract, silent, report);
      known = &own;
    }
    return *known;
  };
  const std::vector<RefusedElement> worst = worst_elements(report);
  const std::vector<Row> refuting = worst_rows(worst, report);
  const RowSet judged = judged_rows(input.problem, options, report, RowSet(input.problem).size());
  ComparedRows compared;
  if (!refuting.empty()) {
    compared = compared_rows(input.problem, judged, options.seed, refuting, field);
    if (compared.sampled()) {
      diagnosis.sample = {static_cast<std::int64_t>(compared.rows.size()), compared.judged,
                          compared.refused};
    }
  }
  if (diagnosis.not_evaluated.empty()) {
    add_functions(subject, options, report, worst, compared, field, diagnosis);
  }
  add_gradient_classes(subject, report, diagnosis);
  diagnosis.functions = static_cast<std::int64_t>(diagnosis.explanations.size());
  if (report.verdict == Verdict::fail) {
    add_arithmetic(input, contract, options, report, refuting, compared, diagnosis);
  }
  return diagnosis;
}

}  // namespace ringproof::oracle
