// Which mistakes of the backward pass a rule accepts (audit.hpp).
#include <algorithm>
#include <limits>

#include "oracle/audit/audit.hpp"
#include "oracle/generate/gradient_mistakes.hpp"

namespace ringproof::oracle {
namespace {

/// Middle points, as they are or as they are stored.
std::vector<double> numbers(const std::vector<GradientBall>& balls, DType type) {
  std::vector<double> values;
  for (const GradientBall& one : balls) values.push_back(round_nearest(type, one.exact.hi));
  return values;
}

}  // namespace

void audit_gradients(const Case& input, const Contract& contract, const Rule& rule,
                     const AuditOptions& options, AuditReport& report) {
  if (!rule.compares_gradients() || !input.dout) return;
  const GradientBalls truth =
      gradient_balls(input.problem, Upstream{input.dout, input.dlse, {}}, contract);
  const auto ratio = [&](AnswerKind kind, const std::vector<GradientBall>& right,
                         const std::vector<GradientBall>* wrong, RuleFinding& finding) {
    const auto place = rule.compares.find(kind);
    if (wrong == nullptr || place == rule.compares.end()) return;
    const std::vector<double> exact = numbers(right, DType::f64);
    const std::vector<double> answer = numbers(*wrong, contract.out.dtype);
    for (const Comparison& one : place->second) {
      const double measured = ratio_of(one, answer, exact, {});
      if (measured <= finding.ratio) continue;
      finding.ratio = measured;
      finding.refused_by = name(kind);
    }
  };
  const WantsForm wants = first_forms(options.forms_per_class);
  visit_gradient_mistakes(
      input, contract, truth, wants,
      [&](const std::string& id, const std::string& words, const WrongGradients& wrong) {
        const bool same_upstream = wrong.dq != nullptr && numbers(*wrong.dq, contract.out.dtype) ==
                                                              numbers(truth.dq, contract.out.dtype);
        if (same_upstream) return;  // dout is ones, or there is no dlse: no mistake here
        RuleFinding finding{id, words, 0, true, {}};
        ratio(AnswerKind::dq, truth.dq, wrong.dq, finding);
        ratio(AnswerKind::dk, truth.dk, wrong.dk, finding);
        ratio(AnswerKind::dv, truth.dv, wrong.dv, finding);
        finding.accepted = finding.ratio <= 1;
        report.findings.push_back(std::move(finding));
      });
}

}  // namespace ringproof::oracle
