// Boxes against stored numbers (comparison.hpp).
#include "oracle/diagnose/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/judge/accept.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

JudgedAnswers judged_answers(const Case& input, const Contract& contract, const Report& report) {
  JudgedAnswers answers;
  if (const AnswerReport* out = report.find(AnswerKind::out); out != nullptr) {
    answers.out = &input.find(AnswerKind::out)->tensor;
    answers.out_rule = output_rule(contract, out->judged_type);
  }
  if (report.find(AnswerKind::lse) != nullptr) answers.lse = &input.find(AnswerKind::lse)->tensor;
  return answers;
}

bool refutes(double answer, const Expected& expected, const OutputRule& rule) {
  switch (expected.kind) {
    case Expected::Kind::anything:
      return false;
    case Expected::Kind::nan:
      return !std::isnan(answer);
    case Expected::Kind::not_finite:
      return std::isfinite(answer);
    case Expected::Kind::ball:
      break;
  }
  if (!std::isfinite(expected.exact.hi)) return answer != expected.exact.hi;
  if (!(expected.bound >= 0) || !(expected.exact.radius >= 0)) return false;  // nothing is known
  return accept(answer, expected.exact, expected.bound, rule) == Decision::fail;
}

StoredLse stored_lse(const Expected& natural, const Contract& contract, DType stored) {
  Expected expected = natural;
  if (natural.kind == Expected::Kind::ball && std::isfinite(natural.exact.hi)) {
    const LseTruth based = lse_in_base(contract, natural.exact, natural.bound);
    expected.exact = based.exact;
    expected.bound = based.bound;
  }
  const double reach = std::abs(expected.exact.hi) + expected.bound + expected.exact.radius;
  return {expected, lse_rule(contract, stored, reach)};
}

bool refutes_lse(double answer, const Expected& natural, const Contract& contract, DType stored) {
  const StoredLse lse = stored_lse(natural, contract, stored);
  return refutes(answer, lse.expected, lse.rule);
}

void Comparison::add_out(const JudgedAnswers& answers, const Row& row,
                         const ExpectedRow& expected) {
  const std::int64_t before = open_;
  for (std::size_t c = 0; c < expected.out.size() && !refuted_; ++c) {
    const double answer = answers.out->at(row.b, row.h, row.i, static_cast<std::int64_t>(c));
    refuted_ = refutes(answer, expected.out[c], answers.out_rule);
    ++elements_;
    open_ += expected.out[c].kind == Expected::Kind::anything;
  }
  if (open_ > before) leave_open(row, false);
}

void Comparison::add_lse(const JudgedAnswers& answers, const Row& row, const ExpectedRow& expected,
                         const Contract& contract) {
  if (refuted_) return;
  const double answer = answers.lse->at(row.b, row.h, row.i, 0);
  ++elements_;
  if (expected.lse.size() == 1) {
    const Expected& only = expected.lse.front().value;
    refuted_ = refutes_lse(answer, only, contract, answers.lse->dtype);
    if (only.kind == Expected::Kind::anything) {
      ++open_;
      leave_open(row, true);
    }
    return;
  }
  for (const ExpectedRow::Lse& form : expected.lse) {
    if (std::find(forms_.begin(), forms_.end(), form.words) == forms_.end()) {
      forms_.emplace_back(form.words);
    }
    if (refutes_lse(answer, form.value, contract, answers.lse->dtype)) {
      refuted_forms_.insert(form.words);
    }
  }
  refuted_ = refuted_forms_.size() == forms_.size();
}

void Comparison::compare_with_truth(const JudgedAnswers& answers, const RefusedElement& element,
                                    const ExpectedRow& expected, const Contract& contract) {
  if (!element.of_lse) {
    const Expected& out = expected.out[static_cast<std::size_t>(element.column)];
    tells_ = tells_ || refutes(element.right, out, answers.out_rule);
    return;
  }
  for (const ExpectedRow::Lse& form : expected.lse) {
    if (!refutes_lse(element.right, form.value, contract, answers.lse->dtype)) continue;
    if (expected.lse.size() == 1) tells_ = true;
    telling_forms_.insert(form.words);
  }
}

bool Comparison::tells_from_truth() const {
  return tells_ || (!forms_.empty() && telling_forms_.count(lse_words()) != 0);
}

std::string Comparison::lse_words() const {
  for (const std::string& form : forms_) {
    if (refuted_forms_.count(form) == 0) return form;
  }
  return "";
}

}  // namespace ringproof::oracle
