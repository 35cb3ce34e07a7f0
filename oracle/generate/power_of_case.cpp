#include "oracle/generate/power_of_case.hpp"

#include <cmath>
#include <stdexcept>

#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/truth_tensors.hpp"

namespace ringproof::oracle {
namespace {

/// Digits after which the rounding of a gradient counts as a hair: one that is exactly zero (a row
/// with a single key) or a tie is decided by none, and each doubling costs the whole head again.
constexpr unsigned kHairBits = 256;

/// What no precision decides is within a hair of a tie: scores that a soft cap makes equal up to
/// e^-10000 give an average of values. Then both neighbours are right answers, and one is taken.
void round_hairs(IntervalTensor& tensor, DType type) {
  for (std::size_t n = 0; n < tensor.rounded.size(); ++n) {
    const double low = tensor.lo[n];
    const bool open = std::isnan(tensor.rounded[n]) && std::isfinite(low);
    if (open && std::isfinite(tensor.hi[n])) tensor.rounded[n] = round_nearest(type, low);
  }
}

/// The gradients of all inputs, rounded to the type of the output.
void add_gradients(const Case& problem, const Recipe& r, DType type, const WalkOptions& options,
                   std::vector<OwnedTensor>& answers) {
  GradientTensors gradients = gradient_tensors(
      problem.problem, Upstream{problem.dout, problem.dlse, {}}, 0, options, type, kHairBits);
  const auto add = [&](const char* name, const AxisOrder order, IntervalTensor& tensor,
                       const std::vector<std::int64_t>& shape) {
    if (tensor.rounded.empty()) return;
    round_hairs(tensor, type);
    Spec spec = r.spec;
    spec.layout = order;
    answers.push_back(shape.size() == 4
                          ? feature_tensor(name, type, spec, shape, tensor.rounded)
                          : OwnedTensor{name, type, shape, encoded(type, tensor.rounded)});
  };
  const AxisOrder stored = r.spec.layout;
  add("dq", stored, gradients.dq, {r.batches, r.heads, r.queries, r.head_dim});
  add("dk", stored, gradients.dk, {r.batches, r.kv_heads, r.keys, r.head_dim});
  add("dv", stored, gradients.dv, {r.batches, r.kv_heads, r.keys, r.value_dim});
  if (problem.problem.bias) {
    const BiasShape shape = bias_shape(problem.problem);
    add("dbias", AxisOrder::bhnd, gradients.dbias, {shape.begin(), shape.end()});
  }
  if (problem.problem.sinks) add("dsinks", stored, gradients.dsinks, {r.heads});
}

}  // namespace

std::vector<OwnedTensor> exact_answers(const GeneratedCase& generated, const Contract& contract,
                                       const WalkOptions& options) {
  const Case problem = generated.as_case();
  const Recipe& r = generated.recipe;
  const DType out_type = contract.out.dtype;
  const DType lse_type = out_type == DType::f64 ? DType::f64 : DType::f32;
  TruthTensors truth =
      truth_tensors(problem.problem, contract.lse.base, 0, options, RoundTo{out_type, lse_type});
  round_hairs(truth.out, out_type);
  round_hairs(truth.lse, lse_type);
  std::vector<OwnedTensor> answers{
      feature_tensor("out", out_type, r.spec, {r.batches, r.heads, r.queries, r.value_dim},
                     truth.out.rounded),
      row_tensor("lse", lse_type, r.spec, {r.batches, r.heads, r.queries}, truth.lse.rounded)};
  if (problem.dout || problem.dlse) add_gradients(problem, r, out_type, options, answers);
  return answers;
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
                  .gradient_refusal = {},
                  .gain = report.power.gain,
                  .missing_mass_lse = report.power.missing_mass_lse,
                  .missing_mass_out = report.power.missing_mass_out,
                  .missing_block = report.power.missing_block,
                  .rows = report.rows_judged,
                  .elements = 0};
  for (const AnswerReport& answer : report.answers) {
    const bool gradient = is_gradient(answer.kind);
    if (!gradient) power.elements += answer.tally.elements;
    if (answer.verdict == Verdict::pass) continue;
    std::string& refusal = gradient ? power.gradient_refusal : power.refusal;
    if (refusal.empty()) refusal = std::string(oracle::name(answer.kind)) + ": " + answer.reason;
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
