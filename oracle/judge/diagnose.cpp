#include "oracle/judge/diagnose.hpp"

#include <cmath>
#include <memory>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/norm_average.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::int64_t kMostRanks = 1024;  // a row costs one pass a rank

struct Comparison {
  std::int64_t elements = 0, outside = 0;
  std::optional<Element> refuting;

  void merge(const Comparison& other) {
    elements += other.elements;
    outside += other.outside;
    if (!refuting) refuting = other.refuting;
  }
};

/// Compares the rows of one chunk with NORM-AVERAGE; one object a thread.
class AverageComparer {
 public:
  AverageComparer(const Case& input, const Contract& contract, const Tensor& out,
                  const OutputRule& rule, std::int64_t ranks)
      : input_(input), out_(out), rule_(rule), mutant_(input.problem, contract, ranks) {}

  void compare(const HeadTruth& head, const RowSet& rows, const Chunk& chunk, unsigned bits,
               AverageOver over, Comparison& result) {
    certified_rows(input_.problem, rows, chunk, bits, head, block_,
                   [&](std::int64_t, RowTruth& row) {
                     certify(input_.problem, row);
                     compare_row(head, row, over, result);
                   });
  }

 private:
  void compare_row(const HeadTruth& head, const RowTruth& row, AverageOver over,
                   Comparison& result) {
    // An empty row averages nothing, so the mistake shows nowhere on it.
    if (!row.not_applicable.empty() || row.empty() || !is_certified(row)) return;
    const double* values = head.values() + row.keys.first * head.values_stride();
    mutant_.row(row, values, head.values_stride(), over, mutant_row_);
    if (!mutant_row_.not_applicable.empty()) return;
    for (std::size_t c = 0; c < mutant_row_.exact.size(); ++c) {
      const auto column = static_cast<std::int64_t>(c);
      const double answer = out_.at(row.b, row.h, row.i, column);
      ++result.elements;
      if (accept(answer, mutant_row_.exact[c], mutant_row_.bound[c], rule_) != Decision::fail) {
        continue;
      }
      ++result.outside;
      if (result.refuting) continue;
      result.refuting =
          Element{.row = {row.b, row.h, row.i},
                  .column = column,
                  .answer = answer,
                  .exact = mutant_row_.exact[c].hi,
                  .accepted = wide_box(mutant_row_.exact[c], mutant_row_.bound[c], rule_),
                  .error_over_bound =
                      error_over_bound(answer, mutant_row_.exact[c], mutant_row_.bound[c], rule_),
                  .decision = Decision::fail};
    }
  }

  const Case& input_;
  const Tensor& out_;
  const OutputRule& rule_;
  NormAverage mutant_;
  MutantRow mutant_row_;
  RowBlock block_;
};

Comparison compare_with_average(const Case& input, const Contract& contract,
                                const CheckOptions& options, const OutputRule& rule,
                                std::int64_t ranks, AverageOver over) {
  const Tensor& out = input.find(AnswerKind::out)->tensor;
  const RowSet rows =
      options.rows ? RowSet(input.problem, *options.rows, options.seed) : RowSet(input.problem);
  const std::vector<Chunk> chunks = chunks_of(input.problem, rows);
  std::vector<Comparison> results(chunks.size());
  std::vector<std::unique_ptr<AverageComparer>> comparers(worker_count(options.walk));
  walk(input.problem, chunks, options.walk,
       [&](std::size_t worker, std::size_t n, const Chunk& chunk, const HeadTruth& head) {
         std::unique_ptr<AverageComparer>& comparer = comparers[worker];
         if (!comparer) {
           comparer = std::make_unique<AverageComparer>(input, contract, out, rule, ranks);
         }
         comparer->compare(head, rows, chunk, options.bits, over, results[n]);
       });
  Comparison result;
  for (const Comparison& chunk : results) result.merge(chunk);
  return result;
}

}  // namespace

std::vector<Explanation> diagnose(const Case& input, const Contract& contract,
                                  const CheckOptions& options, const Report& report) {
  const AnswerReport* out = report.find(AnswerKind::out);
  const std::int64_t ranks = input.problem.spec.ranks.value_or(contract.partials.count);
  std::string not_evaluated;
  if (out == nullptr) {
    not_evaluated = "out is not judged";
  } else if (out->tally.failed == 0) {
    not_evaluated = "no element of out is refused";
  } else if (ranks < 2) {
    not_evaluated = "the spec names no ranks whose partial results could be averaged";
  } else if (ranks > kMostRanks) {
    not_evaluated = "more than " + std::to_string(kMostRanks) + " ranks";
  }
  if (!not_evaluated.empty()) {
    Explanation one;
    one.id = "NORM-AVERAGE";
    one.not_evaluated = not_evaluated;
    return {one};
  }
  const OutputRule rule = output_rule(contract, out->judged_type);
  std::vector<Explanation> explanations;
  for (const AverageOver over : {AverageOver::partials_with_keys, AverageOver::all_ranks}) {
    const Comparison result = compare_with_average(input, contract, options, rule, ranks, over);
    Explanation one;
    one.id = "NORM-AVERAGE";
    one.variant = over == AverageOver::all_ranks ? "over all ranks"
                                                 : "over the ranks that hold a visible key";
    one.elements = result.elements;
    one.outside = result.outside;
    one.refuting = result.refuting;
    one.explained = result.outside == 0 && result.elements > 0;
    explanations.push_back(std::move(one));
  }
  return explanations;
}

}  // namespace ringproof::oracle
