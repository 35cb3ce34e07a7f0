#include "oracle/judge/check.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/judge/decide.hpp"
#include "oracle/judge/edge_rows.hpp"
#include "oracle/judge/gradient_judge.hpp"
#include "oracle/judge/gradient_lean.hpp"
#include "oracle/judge/input_types.hpp"
#include "oracle/judge/row_judge.hpp"
#include "oracle/judge/tally_wire.hpp"

namespace ringproof::oracle {

namespace {

/// Rows for which (43) is computed: enough for a figure, few enough to cost little beside the
/// truth.
constexpr std::int64_t kMissingBlockRows = 64;
/// Consecutive chunks whose sums go together, whoever judges them: enough for a thousand members,
/// few enough that their tallies are small beside a row.
constexpr std::size_t kMostParts = 1024;

bool selected(const CheckOptions& options, AnswerKind kind) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), kind) != options.only.end();
}

/// An answer without elements (of no query, of no key) has nothing that could be judged.
bool is_judged(const Answer& answer, const CheckOptions& options) {
  return selected(options, answer.kind) &&
         std::all_of(answer.tensor.shape.begin(), answer.tensor.shape.end(),
                     [](std::int64_t size) { return size > 0; });
}

bool has_gradient(const Case& input, const CheckOptions& options) {
  return std::any_of(input.answers.begin(), input.answers.end(), [&](const Answer& answer) {
    return is_gradient(answer.kind) && is_judged(answer, options);
  });
}

void require_answers(const Case& input, const CheckOptions& options) {
  for (const AnswerKind kind : options.require) {
    if (input.find(kind) == nullptr) {
      throw BadInput(input.name + ": the required answer is absent (" + std::string(name(kind)) +
                     ")");
    }
  }
}

JudgeRules make_rules(const Case& input, const Contract& contract, const CheckOptions& options) {
  JudgeRules rules;
  rules.problem = &input.problem;
  rules.contract = &contract;
  rules.bits = options.bits;
  for (const Answer& answer : input.answers) {
    if (!selected(options, answer.kind)) continue;
    if (answer.kind == AnswerKind::out) rules.out = &answer.tensor;
    if (answer.kind == AnswerKind::lse) rules.lse = &answer.tensor;
  }
  if (rules.out != nullptr) {
    rules.out_rule =
        output_rule(contract, judged_type(*rules.out, contract.out.dtype, options.team));
  }
  return rules;
}

Tally judge_rows(const Case& input, const JudgeRules& rules, const RowSet& rows,
                 const CheckOptions& options) {
  const std::vector<Chunk> all = chunks_of(input.problem, rows);
  std::vector<Tally> parts(std::min(all.size(), kMostParts));
  const auto part_of = [&](std::size_t chunk) { return chunk * parts.size() / all.size(); };
  std::vector<Chunk> chunks;
  std::vector<std::size_t> part;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (!is_mine(options.team, static_cast<std::int64_t>(part_of(n)),
                 static_cast<std::int64_t>(parts.size()))) {
      continue;
    }
    chunks.push_back(all[n]);
    part.push_back(part_of(n));
  }
  std::vector<Tally> tallies(chunks.size());
  std::vector<std::unique_ptr<RowJudge>> judges(worker_count(options.walk));
  walk(input.problem, chunks, options.walk,
       [&](std::size_t worker, std::size_t n, const Chunk& chunk, const HeadTruth& head) {
         if (!judges[worker]) judges[worker] = std::make_unique<RowJudge>(rules);
         judges[worker]->judge(head, rows, chunk, tallies[n]);
       });
  for (std::size_t n = 0; n < tallies.size(); ++n) parts[part[n]].merge(tallies[n]);
  complete(options.team, parts);
  Tally tally;
  for (const Tally& one : parts) tally.merge(one);
  return tally;
}

GradientRules gradient_rules(const Case& input, const Contract& contract, const RowSet& rows,
                             const CheckOptions& options) {
  GradientRules rules{.problem = &input.problem,
                      .contract = &contract,
                      .upstream = upstream_of(input, contract),
                      .queries = rows,
                      .keys = options.rows
                                  ? RowSet::keys_of(input.problem, *options.rows, options.seed)
                                  : RowSet::keys_of(input.problem),
                      .bits = options.bits};
  for (const Answer& answer : input.answers) {
    if (!is_gradient(answer.kind) || !is_judged(answer, options)) continue;
    const DType judged = judged_type(answer.tensor, contract.out.dtype, options.team);
    rules.of(answer.kind) = {&answer.tensor, output_rule(contract, judged)};
  }
  return rules;
}

/// One case while it is judged: rows go through judge(), all at once or as time allows.
class CaseCheck {
 public:
  CaseCheck(const Case& input, const Contract& contract, const CheckOptions& options)
      : input_(input),
        contract_(contract),
        options_(options),
        forward_(make_rules(input, contract, options)) {
    report_.case_name = input.name;
    report_.contract_name = contract.name;
    report_.contract_hash = contract.hash;
    report_.rows_total = RowSet(input.problem).total();
  }

  Report run() {
    if (has_answer(input_, options_)) {
      arithmetic_self_test();
      // Without queries there are gradients that are exactly 0, and no time to spend.
      if (options_.budget && report_.rows_total > 0) {
        judge_in_time();
      } else {
        const RowSet rows = chosen_rows();
        // Repeats a budget, which did not know how far it would come.
        prepare(options_.edges_first ? report_.rows_total : rows.size());
        forward_.missing_block_stride = std::max<std::int64_t>(1, rows.size() / kMissingBlockRows);
        if (options_.rows && options_.edges_first) find_missing_blocks_at_edges();
        judge(rows);
        if (of_gradients_) judge_gradients(*of_gradients_);
        lean_gradients();
      }
    }
    finish();
    return std::move(report_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  RowSet chosen_rows() const {
    const Problem& problem = input_.problem;
    if (!options_.rows) return RowSet(problem);
    if (!options_.edges_first) return RowSet(problem, *options_.rows, options_.seed);
    return edge_rows(edges_first(problem, options_.seed), 0, *options_.rows);
  }

  /// `count` rows of an order from `first` on.
  RowSet edge_rows(const std::vector<std::int64_t>& order, std::int64_t first,
                   std::int64_t count) const {
    const std::int64_t last = std::min(first + count, static_cast<std::int64_t>(order.size()));
    std::vector<std::int64_t> rows(order.begin() + first, order.begin() + last);
    std::sort(rows.begin(), rows.end());
    return RowSet(input_.problem, std::move(rows));
  }

  /// (43) on the first rows of the order, which a budget and the command that repeats it share.
  void find_missing_blocks_at_edges() {
    const auto order = edges_first(input_.problem, options_.seed);
    const std::int64_t judged = options_.rows.value_or(kFirstBatch);
    edge_rows_.emplace(edge_rows(order, 0, std::min(judged, kFirstBatch)));
    forward_.missing_block_rows = &*edge_rows_;
  }

  /// What depends on how many rows there will be, at most.
  void prepare(std::int64_t rows) {
    if (has_gradient(input_, options_)) {
      of_gradients_ = gradient_rules(input_, contract_, chosen_rows(), options_);
    }
    if (options_.probabilistic) prepare_suspicion(rows);
  }

  /// What the level lists of out and of gradients; one total probability for all of it.
  void prepare_suspicion(std::int64_t rows) {
    ProbabilisticReport report{.failure = contract_.prob_failure};
    for (const AnswerKind kind : {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
      if (of_gradients_ && of_gradients_->of(kind).answer != nullptr) {
        report.gradients.push_back({.kind = kind});
      }
    }
    if (forward_.out == nullptr && report.gradients.empty()) return;
    report.not_evaluated =
        forward_.out == nullptr ? "out is not judged" : no_probabilistic_level(contract_);
    double elements = 0, aggregates = 0;
    if (report.not_evaluated.empty()) {
      elements = static_cast<double>(rows) * static_cast<double>(input_.problem.value_dim);
      aggregates = 1;
    }
    if (!report.gradients.empty()) {
      report.gradients_not_evaluated =
          options_.budget ? "rows are judged as time allows" : no_gradient_level(contract_);
      if (!report.gradients_not_evaluated.empty()) report.gradients.clear();
    }
    aggregates += static_cast<double>(report.gradients.size());
    suspicion_.emplace(contract_, elements, aggregates);
    if (report.not_evaluated.empty()) {
      suspicion_->queries.emplace(input_.problem.q);
      forward_.suspicion = &*suspicion_;
    }
    report_.probabilistic = std::move(report);
  }

  /// (41). Every member of a team does all of it.
  void lean_gradients() {
    if (!report_.probabilistic || report_.probabilistic->gradients.empty()) return;
    const GradientLeans leans = lean_of_gradients(*of_gradients_, options_.walk);
    for (GradientLean& one : report_.probabilistic->gradients) {
      one.found = leans[one.kind];
      one.bound = lean_bound(one.found, suspicion_->lambda);
      one.refuted = model_refuted(one.found);
    }
  }

  void judge(const RowSet& rows) {
    report_.rows_judged += rows.size();
    if (forward_.out == nullptr && forward_.lse == nullptr) return;
    tally_.merge(judge_rows(input_, forward_, rows, options_));
  }

  void judge_gradients(const GradientRules& rules) {
    gradients_.merge(oracle::judge_gradients(rules, options_.walk, options_.team));
    if (!rules.sums_over_keys()) return;
    report_.keys_judged = rules.keys.size();
    report_.keys_total = rules.keys.total();
  }

  /// Rows in batches, edges first, until the time is spent. dq (and a dbias of one element a score)
  /// is judged row by row; what every row adds to waits for the last row, and for time.
  void judge_in_time() {
    const Clock::time_point start = Clock::now();
    const auto spent = [&] {  // by one clock for all members of a team
      const double mine = std::chrono::duration<double>(Clock::now() - start).count();
      if (options_.team == nullptr) return mine;
      return from_wire<double>(options_.team->gather(to_wire(mine)).front());
    };
    const std::vector<std::int64_t> order = edges_first(input_.problem, options_.seed);
    const auto total = static_cast<std::int64_t>(order.size());
    prepare(total);
    find_missing_blocks_at_edges();
    std::int64_t done = 0, batch = kFirstBatch;
    while (done < total && (done == 0 || spent() < *options_.budget)) {
      const RowSet rows = edge_rows(order, done, batch);
      judge(rows);
      if (of_gradients_) judge_gradients(of_gradients_->rows_alone(rows));
      done += rows.size();
      // A quarter of the time that is left, at the speed so far.
      const double rate = static_cast<double>(done) / std::max(spent(), 1e-6);
      const double next = rate * (*options_.budget - spent()) / 4;
      batch = std::clamp(static_cast<std::int64_t>(std::min(next, 1e9)), kFirstBatch, 4 * batch);
    }
    if (!of_gradients_ || !of_gradients_->needs_every_row()) return;
    if (done == total && spent() * kSumsOverRows < *options_.budget - spent()) {
      judge_gradients(of_gradients_->sums_alone());
    } else {
      sums_left_out_ = true;
    }
  }

  /// The tallies become answers, and the answers a verdict.
  void finish() {
    report_.power = tally_.power;
    report_.escalated = tally_.escalated + gradients_.escalated_rows;
    report_.escalated_keys = gradients_.escalated_keys;
    report_.bits = std::max(tally_.bits, gradients_.bits);
    if (forward_.suspicion != nullptr) {
      ProbabilisticReport& probabilistic = *report_.probabilistic;
      probabilistic.found = tally_.suspicion;
      probabilistic.lean_bound = lean_bound(tally_.suspicion, suspicion_->lambda);
      probabilistic.lean_refuted = model_refuted(tally_.suspicion);
    }
    for (const Answer& answer : input_.answers) {
      if (is_judged(answer, options_)) add_answer(answer);
    }
    if (report_.answers.empty()) {
      report_.reason = "no answer to judge";
    } else if (options_.power && !has_power(report_, *options_.power)) {
      report_.verdict = worst(report_.verdict, Verdict::undecided);
      report_.reason = "no power: the demanded gain error is not detectable on the judged rows";
    }
  }

  void add_answer(const Answer& answer) {
    AnswerReport one{.kind = answer.kind, .judged_type = answer.tensor.dtype};
    if (is_gradient(answer.kind)) {
      one.judged_type = of_gradients_->of(answer.kind).rule.dtype;
      one.tally = gradients_[answer.kind];
    } else {
      one.tally = answer.kind == AnswerKind::out ? tally_.out : tally_.lse;
      if (answer.kind == AnswerKind::out) one.judged_type = forward_.out_rule.dtype;
    }
    decide(one);
    if (report_.probabilistic) suspect(*report_.probabilistic, one);
    if (sums_left_out_ && is_gradient(answer.kind) && of_gradients_->is_summed(answer.kind)) {
      one.reason = "every row adds to it, and the time ended before";
    }
    report_.verdict = worst(report_.verdict, one.verdict);
    report_.answers.push_back(std::move(one));
  }

  static constexpr std::int64_t kFirstBatch = 64;  // rows
  static constexpr double kSumsOverRows = 4;       // what dk and dv may cost beside all rows before

  const Case& input_;
  const Contract& contract_;
  const CheckOptions& options_;
  JudgeRules forward_;
  std::optional<RowSet> edge_rows_;  // with missing blocks
  std::optional<SuspicionRules> suspicion_;
  std::optional<GradientRules> of_gradients_;
  Tally tally_;
  GradientTally gradients_;
  bool sums_left_out_ = false;
  Report report_;
};

}  // namespace

const AnswerReport* Report::find(AnswerKind kind) const {
  for (const AnswerReport& answer : answers) {
    if (answer.kind == kind) return &answer;
  }
  return nullptr;
}

bool has_answer(const Case& input, const CheckOptions& options) {
  return std::any_of(input.answers.begin(), input.answers.end(),
                     [&](const Answer& answer) { return is_judged(answer, options); });
}

Report check(const Case& input, const Contract& contract, const CheckOptions& options) {
  require_answers(input, options);
  require_loadable(input, contract, options.team);
  return CaseCheck(input, contract, options).run();
}

}  // namespace ringproof::oracle
