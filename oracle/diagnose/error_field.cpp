// Collecting the field (error_field.hpp).
#include "oracle/diagnose/error_field.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "oracle/contract/bound.hpp"
#include "oracle/diagnose/comparison.hpp"
#include "oracle/diagnose/judged_rows.hpp"
#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

constexpr float kNotJudged = std::numeric_limits<float>::quiet_NaN();

/// An element whose only right value is known.
FieldElement demanded(double answer, double value) {
  const bool right = std::isnan(value) ? std::isnan(answer) : answer == value;
  return {answer, value, 0, right ? 0 : std::numeric_limits<float>::infinity(), !right};
}

class Collector {
 public:
  Collector(const Case& input, const Contract& contract, const JudgedAnswers& answers,
            ErrorField& field)
      : input_(input), contract_(contract), answers_(answers), field_(field) {}

  void row(const HeadTruth& head, std::int64_t n, const RowTruth& row) {
    field_.rows[static_cast<std::size_t>(n)] = {row.b, row.h, row.i};
    field_.visible[static_cast<std::size_t>(n)] = row.visible;
    if (!row.not_applicable.empty() || !is_certified(row)) return;
    if (row.empty()) return empty(n, row);
    const double* values = head.values() + row.keys.first * head.values_stride();
    bound_row(contract_, input_.problem, row, values, head.values_stride(), false, bound_);
    if (!bound_.not_applicable.empty()) return;
    if (answers_.out != nullptr) {
      for (std::size_t c = 0; c < row.out.size(); ++c) {
        const double answer = answers_.out->at(row.b, row.h, row.i, static_cast<std::int64_t>(c));
        if (std::isinf(bound_.out[c])) continue;
        out(n, c) = field_element(answer, row.out[c], bound_.out[c], answers_.out_rule);
      }
    }
    if (answers_.lse == nullptr) return;
    const LseTruth lse = lse_in_base(contract_, row.lse, bound_.lse);
    if (std::isinf(lse.bound)) return;
    const double reach = std::abs(lse.exact.hi) + lse.bound + lse.exact.radius;
    field_.lse[static_cast<std::size_t>(n)] =
        field_element(answers_.lse->at(row.b, row.h, row.i, 0), lse.exact, lse.bound,
                      lse_rule(contract_, answers_.lse->dtype, reach));
  }

 private:
  FieldElement& out(std::int64_t n, std::size_t c) {
    return field_.out[static_cast<std::size_t>(n * field_.columns) + c];
  }

  void empty(std::int64_t n, const RowTruth& row) {
    const EmptyRow rule = input_.problem.spec.empty_row;
    if (rule == EmptyRow::any) return;
    const double value = rule == EmptyRow::nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    if (answers_.out != nullptr) {
      for (std::int64_t c = 0; c < field_.columns; ++c) {
        out(n, static_cast<std::size_t>(c)) =
            demanded(answers_.out->at(row.b, row.h, row.i, c), value);
      }
    }
    if (answers_.lse == nullptr) return;
    field_.lse[static_cast<std::size_t>(n)] = demanded(answers_.lse->at(row.b, row.h, row.i, 0),
                                                       -std::numeric_limits<double>::infinity());
  }

  const Case& input_;
  const Contract& contract_;
  const JudgedAnswers& answers_;
  ErrorField& field_;
  RowBound bound_;
};

}  // namespace

FieldElement field_element(double answer, const Certified& exact, double bound,
                           const OutputRule& rule) {
  return {answer, exact.hi, bound, static_cast<float>(error_over_bound(answer, exact, bound, rule)),
          accept(answer, exact, bound, rule) == Decision::fail};
}

std::int64_t ErrorField::refused_in(std::size_t row) const {
  std::int64_t count = lse.empty() ? 0 : lse[row].refused;
  for (std::int64_t c = 0; !out.empty() && c < columns; ++c) count += at(row, c).refused;
  return count;
}

bool ErrorField::judged(std::size_t row) const {
  if (!lse.empty() && !std::isnan(lse[row].ratio)) return true;
  for (std::int64_t c = 0; !out.empty() && c < columns; ++c) {
    if (!std::isnan(at(row, c).ratio)) return true;
  }
  return false;
}

ErrorField error_field(const Case& input, const Contract& contract, const CheckOptions& options,
                       const Report& report) {
  const JudgedAnswers answers = judged_answers(input, contract, report);
  ErrorField field;
  field.columns = input.problem.value_dim;
  field.out_rule = answers.out_rule;
  const std::int64_t most = std::max<std::int64_t>(1, kMostFieldElements / field.columns);
  const RowSet rows = judged_rows(input.problem, options, report, most);
  field.sampled = rows.sampled();
  const auto size = static_cast<std::size_t>(rows.size());
  field.rows.resize(size);
  field.visible.resize(size);
  const FieldElement nothing{.ratio = kNotJudged};
  if (answers.out != nullptr) {
    field.out.assign(size * static_cast<std::size_t>(field.columns), nothing);
  }
  if (answers.lse != nullptr) field.lse.assign(size, nothing);
  if (size == 0) return field;

  const std::vector<Chunk> chunks = chunks_of(input.problem, rows);
  std::vector<RowBlock> scratch(worker_count(options.walk));
  walk(input.problem, chunks, options.walk,
       [&](std::size_t worker, std::size_t, const Chunk& chunk, const HeadTruth& head) {
         Collector collector(input, contract, answers, field);
         certified_rows(input.problem, rows, chunk, options.bits, head, scratch[worker],
                        [&](std::int64_t n, RowTruth& row) {
                          certify(input.problem, row);
                          collector.row(head, n, row);
                        });
       });
  return field;
}

}  // namespace ringproof::oracle
