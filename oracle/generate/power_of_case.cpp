#include "oracle/generate/power_of_case.hpp"

#include <cmath>
#include <stdexcept>

#include "oracle/judge/truth_tensors.hpp"

namespace ringproof::oracle {

std::vector<OwnedTensor> exact_answers(const GeneratedCase& generated, const Contract& contract,
                                       const WalkOptions& options) {
  const Case problem = generated.as_case();
  const Recipe& r = generated.recipe;
  const DType out_type = contract.out.dtype;
  const DType lse_type = out_type == DType::f64 ? DType::f64 : DType::f32;
  const TruthTensors truth =
      truth_tensors(problem.problem, contract.lse.base, 0, options, RoundTo{out_type, lse_type});
  return {feature_tensor("out", out_type, r.spec, {r.batches, r.heads, r.queries, r.value_dim},
                         truth.out.rounded),
          row_tensor("lse", lse_type, r.spec, {r.batches, r.heads, r.queries}, truth.lse.rounded)};
}

CasePower power_of(const GeneratedCase& generated, const std::string& name,
                   const WalkOptions& options) {
  const Contract contract = read_contract(name, generated.recipe.spec);
  const std::vector<OwnedTensor> answers = exact_answers(generated, contract, options);
  CheckOptions check_options;
  check_options.walk = options;
  const Report report = check(generated.as_case(answers), contract, check_options);
  if (report.verdict == Verdict::fail) {
    throw std::logic_error(generated.recipe.name + ": the exact answer is refused under " + name);
  }
  CasePower power{.contract = name,
                  .refusal = {},
                  .gain = report.power.gain,
                  .missing_mass_lse = report.power.missing_mass_lse,
                  .missing_mass_out = report.power.missing_mass_out,
                  .missing_block = report.power.missing_block,
                  .rows = report.rows_judged,
                  .elements = 0};
  for (const AnswerReport& answer : report.answers) {
    power.elements += answer.tally.elements;
    if (answer.verdict == Verdict::pass) continue;
    if (power.refusal.empty())
      power.refusal = std::string(oracle::name(answer.kind)) + ": " + answer.reason;
  }
  return power;
}

nlohmann::json to_json(const CasePower& power) {
  nlohmann::json json{{"rows", power.rows}, {"elements", power.elements}};
  if (std::isfinite(power.gain)) json["gain"] = power.gain;
  if (power.missing_mass_lse < 1) json["missing_mass_lse"] = power.missing_mass_lse;
  if (power.missing_block > 0) {
    json["missing_block"] = power.missing_block;
    json["missing_mass_out"] = power.missing_mass_out;
  }
  return json;
}

}  // namespace ringproof::oracle
