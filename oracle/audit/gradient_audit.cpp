// Which mistakes of the backward pass a rule accepts (audit.hpp).
#include <algorithm>
#include <limits>

#include "oracle/audit/audit.hpp"
#include "oracle/generate/gradient_mistakes.hpp"

namespace ringproof::oracle {
namespace {

/// Middle points, as they are or as they are stored, times a number.
std::vector<double> numbers(const std::vector<GradientBall>& balls, DType type, double times = 1) {
  std::vector<double> values;
  for (const GradientBall& one : balls) {
    values.push_back(round_nearest(type, times * one.exact.hi));
  }
  return values;
}

class GradientAuditor {
 public:
  GradientAuditor(const Rule& rule, const GradientBalls& truth, DType type)
      : rule_(rule), truth_(truth), type_(type) {}

  /// All gradients, a number of times the exact ones.
  void judge_multiple(double times, RuleFinding& finding) const {
    const auto judge = [&](AnswerKind kind, const std::vector<GradientBall>& right) {
      compare(kind, right, numbers(right, type_, times), finding);
    };
    judge(AnswerKind::dq, truth_.dq);
    judge(AnswerKind::dk, truth_.dk);
    judge(AnswerKind::dv, truth_.dv);
    finding.not_computed.clear();
  }

  void judge(const WrongGradients& wrong, RuleFinding& finding) const {
    const auto judge = [&](AnswerKind kind, const std::vector<GradientBall>& right,
                           const std::vector<GradientBall>* given) {
      compare(kind, right, numbers(given == nullptr ? right : *given, type_), finding);
    };
    judge(AnswerKind::dq, truth_.dq, wrong.dq);
    judge(AnswerKind::dk, truth_.dk, wrong.dk);
    judge(AnswerKind::dv, truth_.dv, wrong.dv);
  }

 private:
  void compare(AnswerKind kind, const std::vector<GradientBall>& right,
               const std::vector<double>& answer, RuleFinding& finding) const {
    const auto place = rule_.compares.find(kind);
    if (place == rule_.compares.end()) return;
    const std::vector<double> exact = numbers(right, DType::f64);
    for (const Comparison& one : place->second) {
      const double measured = ratio_of(one, answer, exact, {});
      if (measured <= finding.ratio) continue;
      finding.ratio = measured;
      finding.refused_by = name(kind);
    }
  }

  const Rule& rule_;
  const GradientBalls& truth_;
  DType type_;
};

}  // namespace

void audit_gradients(const Case& input, const Contract& contract, const Rule& rule,
                     const AuditOptions& options, AuditReport& report) {
  if (!rule.compares_gradients() || !input.dout) return;
  const GradientBalls truth =
      gradient_balls(input.problem, Upstream{input.dout, input.dlse, {}}, contract);
  const DType type = contract.out.dtype;
  const GradientAuditor auditor(rule, truth, type);
  const RuleFinding forward = report.exact;  // a mistake of the backward pass leaves out as it is
  auditor.judge_multiple(1, report.exact);
  for (RuleFinding& finding : report.made_up) {
    if (finding.times) auditor.judge_multiple(*finding.times, finding);
  }
  const WantsForm wants = first_forms(options.forms_per_class);
  visit_gradient_mistakes(
      input, contract, truth, wants,
      [&](const std::string& id, const std::string& words, const WrongGradients& wrong) {
        const bool same_upstream =
            wrong.dq != nullptr && numbers(*wrong.dq, type) == numbers(truth.dq, type);
        if (same_upstream) return;  // dout is ones, or there is no dlse: no mistake here
        RuleFinding finding{
            .id = id, .words = words, .ratio = forward.ratio, .refused_by = forward.refused_by};
        auditor.judge(wrong, finding);
        report.findings.push_back(std::move(finding));
      });
}

}  // namespace ringproof::oracle
