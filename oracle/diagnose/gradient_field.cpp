// Collecting the fields (gradient_field.hpp).
#include "oracle/diagnose/gradient_field.hpp"

#include <algorithm>
#include <limits>

#include "oracle/diagnose/known_truth.hpp"

namespace ringproof::oracle {

namespace {

bool same(const Row& a, const Row& b) { return a.b == b.b && a.h == b.h && a.i == b.i; }

/// Places come one after the other, each with all its columns.
void add(GradientField& field, const Row& row, std::int64_t column, const FieldElement& element) {
  if (field.rows.empty() || !same(field.rows.back(), row)) {
    field.rows.push_back(row);
    const FieldElement nothing{.ratio = std::numeric_limits<float>::quiet_NaN()};
    field.elements.resize(field.rows.size() * static_cast<std::size_t>(field.columns), nothing);
  }
  const std::size_t first = (field.rows.size() - 1) * static_cast<std::size_t>(field.columns);
  field.elements[first + static_cast<std::size_t>(column)] = element;
}

}  // namespace

std::vector<GradientField> gradient_fields(const Case& input, const Contract& contract,
                                           const CheckOptions& options, const Report& report) {
  std::vector<GradientField> fields;
  std::vector<AnswerKind> kinds;
  for (const AnswerKind kind : {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
    const AnswerReport* answer = report.find(kind);
    if (answer == nullptr || answer->tally.elements == 0) continue;
    kinds.push_back(kind);
    const bool values = kind == AnswerKind::dv;
    fields.push_back(
        {.kind = kind, .columns = values ? input.problem.value_dim : input.problem.head_dim});
  }
  if (kinds.empty()) return {};
  CheckOptions silent = options;
  silent.walk.progress = {};
  const KnownTruth known(input, contract, silent, report);
  if (!known.holds(kinds.front())) return {};
  known.judge(
      contract, kinds, known.all(), false, {},
      [&](AnswerKind kind, const Row& row, std::int64_t column, const FieldElement& element) {
        const auto field =
            std::find_if(fields.begin(), fields.end(),
                         [kind](const GradientField& one) { return one.kind == kind; });
        if (field != fields.end()) add(*field, row, column, element);
      });
  return fields;
}

}  // namespace ringproof::oracle
