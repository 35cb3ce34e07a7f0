#include "oracle/judge/check.hpp"

#include <algorithm>
#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/judge/input_types.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

/// Rows for which (43) is computed: enough for a figure, few enough to cost little beside the
/// truth.
constexpr std::int64_t kMissingBlockRows = 64;

bool selected(const CheckOptions& options, AnswerKind kind) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), kind) != options.only.end();
}

bool is_gradient(AnswerKind kind) { return kind != AnswerKind::out && kind != AnswerKind::lse; }

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
    rules.out_rule = output_rule(contract, judged_type(*rules.out, contract.out.dtype));
  }
  return rules;
}

Tally judge_rows(const Case& input, const JudgeRules& rules, const RowSet& rows,
                 const CheckOptions& options) {
  const std::vector<Chunk> chunks = chunks_of(input.problem, rows);
  std::vector<Tally> tallies(chunks.size());
  std::vector<std::unique_ptr<RowJudge>> judges(worker_count(options.walk));
  walk(input.problem, chunks, options.walk,
       [&](std::size_t worker, std::size_t n, const Chunk& chunk, const HeadTruth& head) {
         if (!judges[worker]) judges[worker] = std::make_unique<RowJudge>(rules);
         judges[worker]->judge(head, rows, chunk, tallies[n]);
       });
  Tally tally;
  for (const Tally& chunk : tallies) tally.merge(chunk);
  return tally;
}

/// What would pass everywhere although it is wrong; empty if nothing would.
std::string vacuous(const AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  if (tally.zeros.accepted_everywhere()) return "zeros";
  if (tally.mean.accepted_everywhere()) return "the mean of V";
  if (tally.twice.accepted_everywhere()) return "twice the answer";
  return "";
}

void decide(AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  if (tally.failed > 0 || tally.functional_failed > 0) {
    answer.verdict = Verdict::fail;
    return;
  }
  answer.verdict = Verdict::undecided;
  if (tally.undecided > 0 || tally.functional_undecided > 0) {
    answer.reason = "precision ended before every element was decided";
  } else if (tally.elements == 0 && tally.not_applicable > 0) {
    answer.reason = "not applicable on any row: " + tally.why_not_applicable;
  } else if (tally.elements == 0 && tally.unbounded > 0) {
    answer.reason = "no power: every bound is infinite";
  } else if (tally.elements == 0) {
    answer.reason = "nothing is demanded of these rows";
  } else if (const std::string what = vacuous(answer); !what.empty()) {
    answer.reason = "no power: " + what + " would pass on every judged element";
  } else {
    answer.verdict = Verdict::pass;
  }
}

void demand_power(const CheckOptions& options, Report& report) {
  if (!options.power || report.power.gain <= *options.power) return;
  report.verdict = worst(report.verdict, Verdict::undecided);
  report.reason = "no power: the demanded gain error is not detectable on the judged rows";
}

}  // namespace

const AnswerReport* Report::find(AnswerKind kind) const {
  for (const AnswerReport& answer : answers) {
    if (answer.kind == kind) return &answer;
  }
  return nullptr;
}

Report check(const Case& input, const Contract& contract, const CheckOptions& options) {
  require_answers(input, options);
  require_loadable(input, contract);
  JudgeRules rules = make_rules(input, contract, options);
  const RowSet rows =
      options.rows ? RowSet(input.problem, *options.rows, options.seed) : RowSet(input.problem);
  rules.missing_block_stride = std::max<std::int64_t>(1, rows.size() / kMissingBlockRows);

  Report report{.case_name = input.name,
                .contract_name = contract.name,
                .contract_hash = contract.hash,
                .rows_total = rows.total()};
  Tally tally;
  if ((rules.out != nullptr || rules.lse != nullptr) && rows.size() > 0) {
    arithmetic_self_test();
    tally = judge_rows(input, rules, rows, options);
    report.rows_judged = rows.size();
  }
  report.power = tally.power;
  report.escalated = tally.escalated;
  report.bits = tally.bits;
  for (const Answer& answer : input.answers) {
    if (!selected(options, answer.kind)) continue;
    AnswerReport one{.kind = answer.kind, .judged_type = answer.tensor.dtype};
    if (is_gradient(answer.kind)) {
      one.verdict = Verdict::undecided;
      one.reason = "not judged by this build";
    } else if (rows.size() == 0) {
      continue;
    } else {
      if (answer.kind == AnswerKind::out) one.judged_type = rules.out_rule.dtype;
      one.tally = answer.kind == AnswerKind::out ? tally.out : tally.lse;
      decide(one);
    }
    report.verdict = worst(report.verdict, one.verdict);
    report.answers.push_back(std::move(one));
  }
  if (report.answers.empty()) report.reason = "no answer to judge";
  if (!report.answers.empty()) demand_power(options, report);
  return report;
}

}  // namespace ringproof::oracle
