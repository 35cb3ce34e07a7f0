// Choosing rows, and judging them (compared_rows.hpp).
#include "oracle/diagnose/compared_rows.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "oracle/judge/decide.hpp"
#include "oracle/judge/input_types.hpp"
#include "oracle/judge/random_draw.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

/// Pairs of a query and a key for which a form is evaluated, and the fewest and most rows.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 19, kFewestRows = 128, kMostRows = 4096;

std::int64_t number_of(const Problem& p, const Row& row) {
  return (row.b * p.heads + row.h) * p.queries + row.i;
}

/// One number drawn from each of `count` equal parts: spread over all, in step with no tile size.
void draw(const std::vector<std::int64_t>& from, std::int64_t count, std::uint64_t& state,
          std::set<std::int64_t>& chosen) {
  const auto size = static_cast<std::int64_t>(from.size());
  count = std::min(count, size);
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t first = part * size / count, last = (part + 1) * size / count;
    const auto at = static_cast<std::uint64_t>(last - first);
    chosen.insert(from[static_cast<std::size_t>(first) + uniform_below(at, state)]);
  }
}

}  // namespace

std::vector<Row> ComparedRows::spread(std::size_t most) const {
  const std::size_t count = std::min(most, rows.size());
  std::vector<Row> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(rows[n * rows.size() / count]);
  return some;
}

std::int64_t most_compared_rows(const Problem& p) {
  return std::clamp(kMostPairs / std::max<std::int64_t>(1, p.keys), kFewestRows, kMostRows);
}

ComparedRows compared_rows(const Problem& p, const RowSet& judged, std::uint64_t seed,
                           const std::vector<Row>& always,
                           const std::function<const ErrorField&()>& field) {
  ComparedRows compared{.rows = {}, .judged = judged.size()};
  const std::int64_t most = most_compared_rows(p);
  if (judged.size() <= most) {
    for (std::int64_t n = 0; n < judged.size(); ++n) compared.rows.push_back(judged.row(n));
    return compared;
  }
  std::vector<std::int64_t> refused, right;
  const ErrorField& known = field();
  for (std::size_t n = 0; n < known.rows.size(); ++n) {
    (known.refused_in(n) > 0 ? refused : right).push_back(number_of(p, known.rows[n]));
  }
  std::set<std::int64_t> chosen;
  for (const Row& row : always) chosen.insert(number_of(p, row));
  const std::int64_t half = most / 2;
  const auto many = [](const auto& rows) { return static_cast<std::int64_t>(rows.size()); };
  std::uint64_t state = seed;
  draw(refused, std::max(half, most - many(right)), state, chosen);
  draw(right, std::max(half, most - many(refused)), state, chosen);
  const RowSet rows(p, std::vector<std::int64_t>(chosen.begin(), chosen.end()));
  for (std::int64_t n = 0; n < rows.size(); ++n) compared.rows.push_back(rows.row(n));
  compared.refused = std::count_if(refused.begin(), refused.end(),
                                   [&](std::int64_t one) { return chosen.count(one) != 0; });
  return compared;
}

Verdict judge_rows(const Case& input, const Contract& contract, const CheckOptions& options,
                   const std::vector<AnswerKind>& kinds, const std::vector<Row>& rows,
                   std::int64_t& elements) {
  JudgeRules rules;
  rules.problem = &input.problem;
  rules.contract = &contract;
  rules.bits = options.bits;
  for (const AnswerKind kind : kinds) {
    const Tensor& answer = input.find(kind)->tensor;
    (kind == AnswerKind::out ? rules.out : rules.lse) = &answer;
    if (kind != AnswerKind::out) continue;
    rules.out_rule = output_rule(contract, judged_type(answer, contract.out.dtype));
  }
  std::vector<std::int64_t> numbers;
  for (const Row& row : rows) numbers.push_back(number_of(input.problem, row));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const RowSet set(input.problem, std::move(numbers));
  rules.missing_block_stride = std::max<std::int64_t>(1, set.size());  // (43) is not asked for
  const std::vector<Chunk> chunks = chunks_of(input.problem, set);
  std::vector<Tally> tallies(chunks.size());
  std::vector<std::unique_ptr<RowJudge>> judges(worker_count(options.walk));
  walk(input.problem, chunks, options.walk,
       [&](std::size_t worker, std::size_t n, const Chunk& chunk, const HeadTruth& head) {
         if (!judges[worker]) judges[worker] = std::make_unique<RowJudge>(rules);
         judges[worker]->judge(head, set, chunk, tallies[n]);
       });
  Tally tally;
  for (const Tally& one : tallies) tally.merge(one);
  Verdict verdict = Verdict::pass;
  elements = 0;
  for (const AnswerKind kind : kinds) {
    AnswerReport one{.kind = kind};
    one.tally = kind == AnswerKind::out ? tally.out : tally.lse;
    decide(one);
    verdict = worst(verdict, one.verdict);
    elements += one.tally.elements;
  }
  return verdict;
}

}  // namespace ringproof::oracle
