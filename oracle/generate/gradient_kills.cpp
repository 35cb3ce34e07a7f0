#include "oracle/generate/gradient_kills.hpp"

#include <cmath>

#include "oracle/generate/gradient_mistakes.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {
namespace {

/// Compares the boxes of wrong gradients with those of the right ones.
class GradientSearch {
 public:
  GradientSearch(const Case& input, const Contract& contract)
      : input_(input),
        contract_(contract),
        rule_(output_rule(contract, contract.out.dtype)),
        truth_(gradient_balls(input.problem, Upstream{input.dout, input.dlse, {}}, contract)) {}

  std::vector<FormOutcome> run(const WantsForm& wants) {
    std::vector<FormOutcome> outcomes;
    const Problem& p = input_.problem;
    visit_gradient_mistakes(
        input_, contract_, truth_, wants,
        [&](const std::string& id, const std::string& words, const WrongGradients& wrong) {
          FormOutcome outcome{id, words, {}, 0, false, {}, {}};
          compare(AnswerKind::dq, truth_.dq, wrong.dq, p.heads, p.queries, p.head_dim, outcome);
          compare(AnswerKind::dk, truth_.dk, wrong.dk, p.kv_heads, p.keys, p.head_dim, outcome);
          compare(AnswerKind::dv, truth_.dv, wrong.dv, p.kv_heads, p.keys, p.value_dim, outcome);
          outcomes.push_back(std::move(outcome));
        });
    return outcomes;
  }

 private:
  void compare(AnswerKind kind, const std::vector<GradientBall>& right,
               const std::vector<GradientBall>* wrong, std::int64_t heads, std::int64_t rows,
               std::int64_t columns, FormOutcome& outcome) const {
    if (wrong == nullptr) return;
    for (std::size_t n = 0; n < right.size(); ++n) {
      const GradientBall &a = right[n], &b = (*wrong)[n];
      if (std::isinf(a.bound) || std::isinf(b.bound)) continue;
      const double distance = std::abs((a.exact.hi - b.exact.hi) + (a.exact.lo - b.exact.lo));
      outcome.differs = outcome.differs || distance > 2 * (a.exact.radius + b.exact.radius);
      const Box truth = wide_box(a.exact, a.bound, rule_), box = wide_box(b.exact, b.bound, rule_);
      const double margin = box_margin(truth, box);
      if (!(margin > outcome.margin)) continue;
      outcome.margin = margin;
      if (margin <= 1) continue;
      const auto row = static_cast<std::int64_t>(n) / columns;
      const Row place{row / rows / heads, row / rows % heads, row % rows};
      outcome.kill =
          Certificate{kind, place, static_cast<std::int64_t>(n) % columns, truth, box, margin};
    }
  }

  const Case& input_;
  const Contract& contract_;
  OutputRule rule_;
  GradientBalls truth_;
};

}  // namespace

std::vector<FormOutcome> gradient_kills(const GeneratedCase& generated, const Contract& contract,
                                        const WantsForm& wants) {
  if (generated.find("dout") == nullptr) return {};
  const Case input = generated.as_case();
  return GradientSearch(input, contract).run(wants);
}

}  // namespace ringproof::oracle
