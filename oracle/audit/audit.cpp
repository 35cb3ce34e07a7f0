#include "oracle/audit/audit.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "oracle/audit/low_precision.hpp"
#include "oracle/diagnose/catalogue.hpp"
#include "oracle/diagnose/expected_rows.hpp"
#include "oracle/generate/certified_kills.hpp"

namespace ringproof::oracle {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// out and lse of the rows looked at, one after the other.
struct Answer {
  std::vector<double> out, lse;
  bool open = false;  // some element may be anything, so the form says nothing definite
};

/// The number that is stored for what a kernel may return.
double stored(const Expected& expected, DType type) {
  if (expected.kind == Expected::Kind::ball) return round_nearest(type, expected.exact.hi);
  return kNaN;
}

class Auditor {
 public:
  Auditor(const Case& input, const Contract& contract, const Rule& rule,
          const AuditOptions& options)
      : input_(input),
        contract_(contract),
        rule_(rule),
        options_(options),
        subject_{input_, contract_, input.problem.spec.ranks.value_or(rule.inputs.ranks), {}},
        out_type_(contract.out.dtype),
        lse_type_(out_type_ == DType::f64 ? DType::f64 : DType::f32) {
    const std::int64_t n = input.problem.queries, wanted = std::min(n, options.rows);
    for (std::int64_t row = 0; row < wanted; ++row) {
      // Evenly spread, with the first and the last.
      queries_.push_back(wanted == 1 ? 0 : row * (n - 1) / (wanted - 1));
    }
  }

  AuditReport run() {
    const Problem& p = input_.problem;
    exact_ = right_answer(true);
    rounded_ = right_answer(false);
    if (rule_.needs_low_precision()) low_precision();
    AuditReport report;
    report.rule = rule_.name;
    report.rows = static_cast<std::int64_t>(queries_.size()) * p.batches * p.heads;
    report.rows_total = p.queries * p.batches * p.heads;
    report.exact = judged("", "the exact answer, rounded", rounded_);
    report.exact.times = 1;
    add_made_up(report);
    report.findings = catalogue_findings();
    return report;
  }

 private:
  std::vector<RuleFinding> catalogue_findings() {
    if (!looks_at_forward()) return {};
    Families families = mutant_catalogue(subject_);
    const WantsForm wants = first_forms(options_.forms_per_class);
    for (Family& family : families) {
      auto& mutants = family.mutants;
      mutants.erase(std::remove_if(mutants.begin(), mutants.end(),
                                   [&](const Mutant& m) { return !wants(m.id, m.words); }),
                    mutants.end());
    }
    std::vector<std::vector<RuleFinding>> found(families.size());
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&] {
      for (std::size_t n = next++; n < families.size(); n = next++) {
        try {
          const std::vector<Answer> answers = answers_of(families[n], false);
          for (std::size_t m = 0; m < answers.size(); ++m) {
            const Mutant& mutant = families[n].mutants[m];
            if (answers[m].open || !differs(answers[m])) continue;
            found[n].push_back(judged(mutant.id, mutant.words, answers[m]));
          }
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      }
    };
    {
      const unsigned machine = std::max(1u, std::thread::hardware_concurrency());
      const int threads = options_.threads > 0 ? options_.threads : static_cast<int>(machine);
      std::vector<std::jthread> pool;
      for (int n = 1; n < threads; ++n) pool.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
    std::vector<RuleFinding> all;
    for (const std::vector<RuleFinding>& some : found)
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }

  /// What each mutant of the family answers, [mutants]. `exact`: binary64, not stored.
  std::vector<Answer> answers_of(const Family& family, bool exact) const {
    if (family.mutants.empty()) return {};
    const Problem& p = input_.problem;
    const std::size_t rows = queries_.size() * static_cast<std::size_t>(p.batches * p.heads);
    Answer unknown;
    unknown.out.assign(rows * static_cast<std::size_t>(p.value_dim), kNaN);
    unknown.lse.assign(rows, kNaN);
    std::vector<Answer> answers(family.mutants.size(), unknown);
    const Setting& setting = family.setting;
    if (!setting.out_from && !setting.lse_from) {
      collect(family, {}, true, true, exact, answers);
    } else {
      collect(family, setting.out_from, true, false, exact, answers);
      collect(family, setting.lse_from, false, true, exact, answers);
    }
    return answers;
  }

  /// Rows of one head that one rank owns, and where their answers are stored.
  struct Group {
    std::vector<std::int64_t> queries;
    std::vector<std::size_t> places;
  };

  using HeadAndRank = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // b, h, rank
  using Groups = std::map<HeadAndRank, Group>;

  /// The rows whose answers are stored in the rows looked at; `from` empty: the same rows. False if
  /// some row is never written.
  bool group_rows(const Setting& setting, const std::function<Row(const Row&)>& from,
                  Groups& groups) const {
    bool all = true;
    std::size_t place = 0;
    for (std::int64_t b = 0; b < input_.problem.batches; ++b) {
      for (std::int64_t h = 0; h < input_.problem.heads; ++h) {
        for (const std::int64_t i : queries_) {
          const Row stored_in{b, h, i};
          const Row row = from ? from(stored_in) : stored_in;
          if (row.i >= 0) {
            const std::int64_t rank = setting.rank ? setting.rank(row.b, row.i) : 0;
            Group& group = groups[HeadAndRank(row.b, row.h, rank)];
            group.queries.push_back(row.i);
            group.places.push_back(place);
          }
          all = all && row.i >= 0;
          ++place;
        }
      }
    }
    return all;
  }

  void collect(const Family& family, const std::function<Row(const Row&)>& from, bool out, bool lse,
               bool exact, std::vector<Answer>& answers) const {
    Groups groups;
    const bool all = group_rows(family.setting, from, groups);
    for (Answer& answer : answers) answer.open = answer.open || !all;
    for (const auto& [key, group] : groups) {
      const auto [b, h, rank] = key;
      const SolvedRows solved =
          solve(subject_, family.setting, b, h, rank, group.queries, Precision::fast);
      for (std::size_t n = 0; n < group.queries.size(); ++n) {
        std::string reason;
        const std::vector<ExpectedRow> expected = expected_rows(family, solved, n, reason);
        for (std::size_t m = 0; m < answers.size(); ++m) {
          if (expected.empty()) {
            answers[m].open = true;
            continue;
          }
          if (out) store_out(expected[m], group.places[n], exact, answers[m]);
          if (lse) store_lse(expected[m], group.places[n], exact, answers[m]);
        }
      }
    }
  }

  void store_out(const ExpectedRow& row, std::size_t place, bool exact, Answer& answer) const {
    for (std::size_t c = 0; c < row.out.size(); ++c) {
      answer.open = answer.open || row.out[c].kind == Expected::Kind::anything;
      answer.out[place * row.out.size() + c] = stored(row.out[c], exact ? DType::f64 : out_type_);
    }
  }
  void store_lse(const ExpectedRow& row, std::size_t place, bool exact, Answer& answer) const {
    const Expected& lse = row.lse.front().value;
    answer.open = answer.open || (lse.kind == Expected::Kind::anything && looks_at_lse());
    answer.lse[place] = stored(lse, exact ? DType::f64 : lse_type_);
  }
  bool looks_at_forward() const {
    return looks_at_lse() || rule_.compares.count(AnswerKind::out) != 0;
  }
  bool looks_at_lse() const { return rule_.compares.count(AnswerKind::lse) != 0; }

  /// The answer without a mistake.
  Answer right_answer(bool exact) const {
    const Family none{{}, {Mutant{}}};
    return answers_of(none, exact).front();
  }

  bool differs(const Answer& answer) const {
    const Answer& right = rounded_;
    return !same(answer.out, right.out) || !same(answer.lse, right.lse);
  }
  static bool same(const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (a[n] != b[n] && !(std::isnan(a[n]) && std::isnan(b[n]))) return false;
    }
    return true;
  }

  RuleFinding judged(const std::string& id, const std::string& words, const Answer& answer) const {
    RuleFinding finding{.id = id, .words = words};
    for (const auto& [kind, comparisons] : rule_.compares) {
      const bool lse = kind == AnswerKind::lse;
      if (!lse && kind != AnswerKind::out) {
        finding.not_computed.push_back(kind);
        continue;
      }
      for (const Comparison& one : comparisons) {
        const double ratio = ratio_of(one, lse ? answer.lse : answer.out,
                                      lse ? exact_.lse : exact_.out, low_precision_);
        if (ratio > finding.ratio) {
          finding.ratio = ratio;
          finding.refused_by = name(kind);
        }
      }
    }
    return finding;
  }

  void low_precision() {
    const Problem& p = input_.problem;
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        for (const std::int64_t i : queries_) {
          const std::vector<double> row = low_precision_row(p, b, h, i);
          low_precision_.insert(low_precision_.end(), row.begin(), row.end());
        }
      }
    }
  }

  /// Answers of which every element is `value(row, column)`; the LSE is right. `times`: so many
  /// times the exact value, which says what the gradients are as well.
  template <class Value>
  void add_answer(const char* words, std::optional<double> times, AuditReport& report,
                  Value&& value) {
    if (!looks_at_forward() && !times) return;
    const Problem& p = input_.problem;
    Answer answer;
    answer.lse = rounded_.lse;
    std::size_t n = 0;
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        for (const std::int64_t i : queries_) {
          for (std::int64_t c = 0; c < p.value_dim; ++c) {
            answer.out.push_back(round_nearest(out_type_, value(Row{b, h, i}, c, exact_.out[n++])));
          }
        }
      }
    }
    report.made_up.push_back(judged("", words, answer));
    report.made_up.back().times = times;
  }

  void add_made_up(AuditReport& report) {
    const Problem& p = input_.problem;
    add_answer("zeros", 0, report, [](const Row&, std::int64_t, double) { return 0.0; });
    add_answer("the mean of the visible values", {}, report,
               [&](const Row& row, std::int64_t c, double) {
                 double sum = 0, count = 0;
                 const KeyRange range = visible_range(p, row.b, row.i);
                 for (std::int64_t j = range.first; j < range.last; ++j) {
                   if (!visible(p, row.b, row.h, row.i, j)) continue;
                   sum += p.v.at(row.b, p.kv_head(row.h), j, c);
                   ++count;
                 }
                 return count > 0 ? sum / count : 0;
               });
    add_answer("the first row of V", {}, report, [&](const Row& row, std::int64_t c, double) {
      return p.keys > 0 ? p.v.at(row.b, p.kv_head(row.h), 0, c) : 0;
    });
    constexpr double kMost = 0.9;
    add_answer("0.9 of the answer", kMost, report,
               [](const Row&, std::int64_t, double exact) { return kMost * exact; });
  }

  const Case& input_;
  const Contract& contract_;
  const Rule& rule_;
  AuditOptions options_;
  Subject subject_;
  DType out_type_, lse_type_;
  std::vector<std::int64_t> queries_;
  Answer exact_, rounded_;
  std::vector<double> low_precision_;
};

}  // namespace

AuditReport audit(const Case& input, const Contract& contract, const Rule& rule,
                  const AuditOptions& options) {
  return Auditor(input, contract, rule, options).run();
}

}  // namespace ringproof::oracle
