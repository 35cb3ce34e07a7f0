#include "oracle/generate/certified_kills.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "oracle/diagnose/catalogue.hpp"
#include "oracle/diagnose/comparison.hpp"
#include "oracle/diagnose/expected_rows.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// What one element may be, as a set of stored numbers.
struct Answers {
  Expected::Kind kind = Expected::Kind::anything;
  Box box;  // of a ball
};

Answers answers_of(const Expected& expected, const OutputRule& rule) {
  if (expected.kind != Expected::Kind::ball) return {expected.kind, {kNaN, kNaN}};
  if (!std::isfinite(expected.exact.hi)) {
    return {Expected::Kind::ball, {expected.exact.hi, expected.exact.hi}};
  }
  return {Expected::Kind::ball, wide_box(expected.exact, expected.bound, rule)};
}

/// The LSE in the contract's base and its storage.
Answers lse_answers(const Expected& natural, const Contract& contract) {
  const DType stored = contract.out.dtype == DType::f64 ? DType::f64 : DType::f32;
  const StoredLse lse = stored_lse(natural, contract, stored);
  return answers_of(lse.expected, lse.rule);
}

bool is_finite(const Box& box) { return std::isfinite(box.low) && std::isfinite(box.high); }

/// (37) for one element: above 1 if no number is in both sets.
double margin_of(const Answers& truth, const Answers& mutant) {
  using Kind = Expected::Kind;
  if (truth.kind == Kind::anything || mutant.kind == Kind::anything) return 0;
  if (truth.kind == Kind::ball && mutant.kind == Kind::ball) {
    return box_margin(truth.box, mutant.box);
  }
  if (truth.kind == Kind::nan) return mutant.kind == Kind::ball ? kInfinity : 0;
  if (truth.kind != Kind::ball) return 0;
  const bool refused = mutant.kind == Kind::nan || is_finite(truth.box);
  return refused ? kInfinity : 0;
}

/// True if the exact values certainly differ.
bool differ(const Expected& a, const Expected& b) {
  if (a.kind != Expected::Kind::ball || b.kind != Expected::Kind::ball) {
    return a.kind != b.kind && a.kind != Expected::Kind::anything &&
           b.kind != Expected::Kind::anything;
  }
  if (!std::isfinite(a.exact.hi) || !std::isfinite(b.exact.hi)) return a.exact.hi != b.exact.hi;
  const double distance = std::abs((a.exact.hi - b.exact.hi) + (a.exact.lo - b.exact.lo));
  return distance > (a.exact.radius + b.exact.radius) * 2;
}

/// Everything that compares mutated rows with the truth's, for one case and contract.
class Search {
 public:
  Search(const GeneratedCase& generated, const Contract& contract)
      : case_(generated.as_case()),
        contract_(contract),
        subject_{case_, contract_, case_.problem.spec.ranks.value_or(contract.partials.count), {}},
        solver_(subject_, Precision::fast),
        out_rule_(output_rule(contract, contract.out.dtype)) {
    choose_rows();
  }

  std::vector<FormOutcome> run(const WantsForm& wants) {
    std::vector<FormOutcome> outcomes;
    for (Family& family : mutant_catalogue(subject_)) {
      auto& mutants = family.mutants;
      mutants.erase(std::remove_if(mutants.begin(), mutants.end(),
                                   [&](const Mutant& m) { return !wants(m.id, m.words); }),
                    mutants.end());
      if (mutants.empty()) continue;
      std::vector<State> states = search(family);
      for (std::size_t m = 0; m < mutants.size(); ++m) {
        outcomes.push_back(std::move(states[m].outcome));
        outcomes.back().id = mutants[m].id;
        outcomes.back().words = mutants[m].words;
        outcomes.back().also = mutants[m].also;
      }
    }
    return outcomes;
  }

 private:
  /// A form on its way: its LSE may have alternatives, all of which must be refuted.
  struct State {
    FormOutcome outcome;
    std::map<std::string, std::optional<Certificate>> lse_forms;
    bool done() const { return outcome.kill.has_value(); }
  };

  /// Rows at the edges and in between, of every head; the heads of a pass together.
  void choose_rows() {
    const Problem& p = case_.problem;
    const std::int64_t n = p.queries;
    const std::array<std::vector<std::int64_t>, 3> passes{
        {{n - 1, n / 2}, {0, n / 3, n - 2}, {1, 2, n / 4, 2 * n / 3, n / 6}}};
    for (const auto& pass : passes) {
      for (std::int64_t b = 0; b < p.batches; ++b) {
        for (std::int64_t h = 0; h < p.heads; ++h) {
          for (const std::int64_t i : pass) add_row({b, h, std::clamp<std::int64_t>(i, 0, n - 1)});
        }
      }
    }
  }
  void add_row(const Row& row) {
    const auto key = std::tuple(row.b, row.h, row.i);
    if (case_.problem.queries == 0 || !truths_.emplace(key, ExpectedRow{}).second) return;
    const auto solved = solver_.solve({}, row.b, row.h, 0, {row.i});
    const bool applies =
        solved->rows[0].not_applicable.empty() && solved->bounds[0].not_applicable.empty();
    if (!applies) return;
    truths_[key] = unchanged_row(*solved, 0);
    rows_.push_back(row);
  }
  const ExpectedRow& truth(const Row& row) const {
    return truths_.at(std::tuple(row.b, row.h, row.i));
  }

  std::vector<State> search(const Family& family) {
    std::vector<State> states(family.mutants.size());
    const Setting& setting = family.setting;
    const auto all_done = [&] {
      return std::all_of(states.begin(), states.end(), [](const State& s) { return s.done(); });
    };
    for (const Row& row : rows_) {
      if (all_done()) break;
      const Row out_row = setting.out_from ? setting.out_from(row) : row;
      const Row lse_row = setting.lse_from ? setting.lse_from(row) : row;
      const bool same = out_row.b == lse_row.b && out_row.h == lse_row.h && out_row.i == lse_row.i;
      if (out_row.i >= 0) visit(family, row, out_row, true, same, states);
      if (!same && lse_row.i >= 0) visit(family, row, lse_row, false, true, states);
    }
    return states;
  }

  /// Compares what the mistakes make of `source` with the truth of `row`, where it is stored.
  void visit(const Family& family, const Row& row, const Row& source, bool with_out, bool with_lse,
             std::vector<State>& states) {
    const Setting& setting = family.setting;
    const std::int64_t rank = setting.rank ? setting.rank(source.b, source.i) : 0;
    const auto solved = solver_.solve(setting, source.b, source.h, rank, {source.i});
    std::string reason;
    const std::vector<ExpectedRow> expected = expected_rows(family, *solved, 0, reason);
    for (std::size_t m = 0; m < states.size(); ++m) {
      if (states[m].done()) continue;
      if (!reason.empty()) {
        states[m].outcome.untold = reason;
        continue;
      }
      if (with_out) compare_out(row, expected[m], states[m].outcome);
      if (with_lse && !states[m].done()) compare_lse(row, expected[m], states[m]);
    }
  }

  void compare_out(const Row& row, const ExpectedRow& expected, FormOutcome& outcome) const {
    const ExpectedRow& exact = truth(row);
    for (std::size_t c = 0; c < exact.out.size(); ++c) {
      const Answers right = answers_of(exact.out[c], out_rule_);
      const Answers wrong = answers_of(expected.out[c], out_rule_);
      outcome.differs = outcome.differs || differ(exact.out[c], expected.out[c]);
      note({AnswerKind::out, row, static_cast<std::int64_t>(c), right.box, wrong.box,
            margin_of(right, wrong)},
           outcome);
    }
  }

  static void note(const Certificate& seen, FormOutcome& outcome) {
    if (!(seen.margin > outcome.margin)) return;
    outcome.margin = seen.margin;
    if (seen.margin > 1) outcome.kill = seen;
  }

  void compare_lse(const Row& row, const ExpectedRow& expected, State& state) const {
    const Expected& exact = truth(row).lse.front().value;
    const Answers right = lse_answers(exact, contract_);
    bool all = true;
    double smallest = kInfinity;
    for (const ExpectedRow::Lse& form : expected.lse) {
      const Answers wrong = lse_answers(form.value, contract_);
      const double margin = margin_of(right, wrong);
      smallest = std::min(smallest, margin);
      auto& kill = state.lse_forms[form.words];
      if (margin > 1 && !kill) kill = {AnswerKind::lse, row, 0, right.box, wrong.box, margin};
      all = all && kill.has_value();
      if (expected.lse.size() == 1) {
        state.outcome.differs = state.outcome.differs || differ(exact, form.value);
      }
    }
    for (const auto& [words, kill] : state.lse_forms) all = all && kill.has_value();
    if (all && !state.lse_forms.empty()) {
      state.outcome.kill = state.lse_forms.begin()->second;
      for (const auto& [words, kill] : state.lse_forms) {
        if (kill->margin < state.outcome.kill->margin) state.outcome.kill = kill;
      }
      state.outcome.margin = state.outcome.kill->margin;
    } else {
      state.outcome.margin = std::max(state.outcome.margin, std::min(smallest, 1.0));
    }
  }

  Case case_;
  Contract contract_;
  Subject subject_;
  RowSolver solver_;
  OutputRule out_rule_;
  std::vector<Row> rows_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, ExpectedRow> truths_;
};

std::string hexadecimal(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

nlohmann::json to_json(const Box& box) { return {hexadecimal(box.low), hexadecimal(box.high)}; }

nlohmann::json to_json(const Certificate& certificate) {
  nlohmann::json json{{"answer", name(certificate.answer)},
                      {"at", {certificate.row.b, certificate.row.h, certificate.row.i}},
                      {"truth", to_json(certificate.truth)},
                      {"mutant", to_json(certificate.mutant)}};
  if (certificate.answer == AnswerKind::out) json["at"].push_back(certificate.column);
  if (std::isfinite(certificate.margin)) json["margin"] = certificate.margin;
  return json;
}

}  // namespace

double box_margin(const Box& a, const Box& b) {
  if (a.low == b.low && a.high == b.high) return 0;
  const bool disjoint = a.high < b.low || b.high < a.low;
  if (!is_finite(a) || !is_finite(b)) return disjoint ? kInfinity : 0;
  const double centres = std::abs((a.low / 2 + a.high / 2) - (b.low / 2 + b.high / 2));
  const double widths = (a.high / 2 - a.low / 2) + (b.high / 2 - b.low / 2);
  const double margin = widths > 0 ? centres / widths : kInfinity;
  // The division rounds; the comparison above does not.
  return disjoint ? std::max(margin, std::nextafter(1.0, 2.0)) : std::min(margin, 1.0);
}

std::vector<FormOutcome> certified_kills(const GeneratedCase& generated, const Contract& contract,
                                         const WantsForm& wants) {
  return Search(generated, contract).run(wants);
}

WantsForm first_forms(int per_class) {
  auto seen = std::make_shared<std::map<std::string, int>>();
  return [seen, per_class](const std::string& id, const std::string&) {
    return ++(*seen)[id] <= per_class;
  };
}

nlohmann::json to_json(const std::vector<FormOutcome>& outcomes) {
  struct ByClass {
    int forms = 0, killed = 0;
    const FormOutcome* weakest = nullptr;
  };
  std::map<std::string, ByClass> classes;
  for (const FormOutcome& outcome : outcomes) {
    if (!outcome.untold.empty() && !outcome.kill) continue;
    ByClass& one = classes[outcome.id];
    one.forms += outcome.differs || outcome.kill;
    if (!outcome.kill) continue;
    ++one.killed;
    if (one.weakest == nullptr || outcome.margin < one.weakest->margin) one.weakest = &outcome;
  }
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [id, one] : classes) {
    if (one.killed == 0) continue;
    json[id] = {
        {"forms", one.forms}, {"killed", one.killed}, {"weakest", to_json(*one.weakest->kill)}};
    json[id]["weakest"]["form"] = one.weakest->words;
  }
  return json;
}

}  // namespace ringproof::oracle
