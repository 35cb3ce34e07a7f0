// The inputs of a rule's own test, drawn by our generator.
#include <algorithm>
#include <string_view>

#include "oracle/audit/audit.hpp"
#include "oracle/generate/random.hpp"

namespace ringproof::oracle {

GeneratedCase rule_inputs(const Rule& rule, std::uint64_t seed, std::int64_t shorter) {
  Recipe r = rule.inputs.recipe;
  r.queries = std::max<std::int64_t>(1, r.queries / shorter);
  r.keys = std::max<std::int64_t>(1, r.keys / shorter);
  r.gradients = rule.compares_gradients();
  GeneratedCase generated = generate(r, seed);
  // These suites differentiate through out alone.
  std::erase_if(generated.tensors, [](const OwnedTensor& one) { return one.name == "dlse"; });
  const auto redraw = [&](const char* name, const std::vector<std::int64_t>& shape) {
    Random random(seed, rule.name + "/inputs/" + name);
    std::vector<double> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
    for (double& x : values) {
      switch (rule.inputs.distribution) {
        case RuleInputs::Distribution::normal:
          x = random.normal();
          break;
        case RuleInputs::Distribution::uniform:
          x = random.uniform();
          break;
        case RuleInputs::Distribution::clamped:
          x = std::clamp(random.normal(), -1.0, 1.0);
          break;
      }
      x *= rule.inputs.factor;
      if (rule.inputs.upstream_ones && std::string_view(name) == "dout") x = 1;
    }
    for (OwnedTensor& tensor : generated.tensors) {
      if (tensor.name == name) tensor = feature_tensor(name, tensor.dtype, r.spec, shape, values);
    }
  };
  redraw("q", {r.batches, r.heads, r.queries, r.head_dim});
  redraw("k", {r.batches, r.kv_heads, r.keys, r.head_dim});
  redraw("v", {r.batches, r.kv_heads, r.keys, r.value_dim});
  redraw("dout", {r.batches, r.heads, r.queries, r.value_dim});
  return generated;
}

}  // namespace ringproof::oracle
