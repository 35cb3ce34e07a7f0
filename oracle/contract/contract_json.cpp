// The JSON form of a contract: every field, its type and range, and what "spec" stands for
// (docs/contract.md, section "fields"). Names and variants are contract_name.cpp.
#include <algorithm>

#include "oracle/case/error.hpp"
#include "oracle/case/sha256.hpp"
#include "oracle/case/words.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/contract/contract_fields.hpp"
#include "oracle/contract/contract_name.hpp"

namespace ringproof::oracle {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostKeys = std::int64_t{1} << 40;
constexpr std::int64_t kMostParts = std::int64_t{1} << 20;
constexpr std::int64_t kMostRoundings = 1000;

/// The count that "spec" stands for until the spec is known.
constexpr std::int64_t kFromSpec = 0;

std::string child(const Fields& fields, const char* field) { return fields.path(field); }

Accumulator read_accumulator(const Json& json, const std::string& path);

Accumulator read_rounded_sum(const Json& json, const std::string& path, bool tree) {
  const Fields fields = tree ? Fields(json, path, {"model", "u", "products", "leaf"})
                             : Fields(json, path, {"model", "u", "products"});
  Accumulator result;
  result.model = tree ? Accumulator::Model::tree : Accumulator::Model::any_order;
  result.u = fields.relative_error("u");
  result.products_rounded = fields.word<bool>("products", {{"exact", false}, {"rounded", true}});
  if (tree) result.leaf = fields.integer("leaf", 1, kMostKeys);
  return result;
}

Accumulator read_blocked(const Json& json, const std::string& path) {
  const Fields fields(json, path, {"model", "block", "u", "inner"});
  Accumulator result;
  result.model = Accumulator::Model::blocked;
  result.block = fields.integer("block", 1, kMostKeys);
  result.u = fields.relative_error("u");
  result.of.push_back(read_accumulator(fields.json("inner"), child(fields, "inner")));
  return result;
}

Accumulator read_mma(const Json& json, const std::string& path) {
  const Fields fields(json, path, {"model", "b", "neab"});
  Accumulator result;
  result.model = Accumulator::Model::mma;
  result.b = fields.integer("b", 1, 1024);
  result.neab = fields.integer("neab", -23, 64);
  return result;
}

Accumulator read_alternatives(const Json& json, const std::string& path) {
  const Fields fields(json, path, {"model", "of"});
  Accumulator result;
  result.model = Accumulator::Model::max;
  if (!fields.json("of").is_array() || fields.json("of").empty()) {
    throw BadInput("contract: " + child(fields, "of") + " must be a list of accumulators");
  }
  for (const auto& inner : fields.json("of")) {
    result.of.push_back(read_accumulator(inner, child(fields, "of") + "[]"));
  }
  return result;
}

Accumulator read_accumulator(const Json& json, const std::string& path) {
  if (!json.is_object() || !json.contains("model")) {
    throw BadInput("contract: missing field " + path + ".model");
  }
  const Json model_only{{"model", json.at("model")}};
  using Model = Accumulator::Model;
  const auto model = Fields(model_only, path, {"model"})
                         .word<Model>("model", {{"any_order", Model::any_order},
                                                {"tree", Model::tree},
                                                {"blocked", Model::blocked},
                                                {"mma", Model::mma},
                                                {"max", Model::max}});
  switch (model) {
    case Model::blocked:
      return read_blocked(json, path);
    case Model::mma:
      return read_mma(json, path);
    case Model::max:
      return read_alternatives(json, path);
    default:
      return read_rounded_sum(json, path, model == Model::tree);
  }
}

Accumulator accumulator(const Fields& fields, const char* field) {
  return read_accumulator(fields.json(field), child(fields, field));
}

DType dtype(const Fields& fields) {
  return fields.word<DType>("dtype", {{"fp64", DType::f64},
                                      {"fp32", DType::f32},
                                      {"fp16", DType::f16},
                                      {"bf16", DType::bf16},
                                      {"e4m3", DType::f8_e4m3},
                                      {"e5m2", DType::f8_e5m2}});
}

RoundMode round_mode(const Fields& fields) {
  return fields.word<RoundMode>(
      "round", {{"rn", RoundMode::rn}, {"rz", RoundMode::rz}, {"faithful", RoundMode::faithful}});
}

/// The places marked 1.01 in docs/contract.md hold for errors up to 2^-7.
double small_error(const Fields& fields, const char* field) {
  const double value = fields.number(field);
  if (value <= 0x1p-7) return value;
  throw BadInput("contract: " + fields.path(field) + " must be at most 0x1p-7");
}

std::int64_t count_or_spec(const Fields& fields) {
  if (fields.json("count") == "spec") return kFromSpec;
  return fields.integer("count", 1, kMostParts);
}

Contract::Score read_score(const Json& json) {
  const Fields fields(json, "score",
                      {"acc", "bias_roundings", "bias_store", "eta", "scale_const_u",
                       "scale_roundings", "sink_roundings", "softcap", "store", "store_eta"});
  const Fields cap(fields.json("softcap"), "score.softcap",
                   {"roundings", "store", "tanh_abs", "tanh_rel"});
  const auto roundings = [&](const char* field) {
    return static_cast<int>(fields.integer(field, 0, kMostRoundings));
  };
  Contract::Score score;
  score.acc = accumulator(fields, "acc");
  score.eta = fields.number("eta");
  score.scale_roundings = roundings("scale_roundings");
  score.scale_const_u = fields.relative_error("scale_const_u");
  score.store = fields.relative_errors("store");
  score.store_eta = fields.number("store_eta");
  score.softcap.roundings = static_cast<int>(cap.integer("roundings", 0, kMostRoundings));
  score.softcap.store = cap.relative_errors("store");
  score.softcap.tanh_rel = cap.relative_error("tanh_rel");
  score.softcap.tanh_abs = cap.number("tanh_abs");
  score.bias_roundings = roundings("bias_roundings");
  score.bias_store = fields.relative_errors("bias_store");
  score.sink_roundings = roundings("sink_roundings");
  return score;
}

Contract::Softmax read_softmax(const Json& json) {
  const Fields fields(json, "softmax",
                      {"alpha_from", "arg", "block", "exp_eta", "exp_rel", "exp_zero", "lazy_log2",
                       "order", "rescale", "u"});
  Contract::Softmax softmax;
  softmax.u = small_error(fields, "u");
  softmax.arg = fields.word<ExpArgument>("arg", {{"sub", ExpArgument::sub},
                                                 {"sub_log2", ExpArgument::sub_log2},
                                                 {"fma_scaled", ExpArgument::fma_scaled}});
  softmax.alpha_from = fields.word<AlphaFrom>(
      "alpha_from", {{"raw_max", AlphaFrom::raw_max}, {"scaled_max", AlphaFrom::scaled_max}});
  softmax.exp_rel = small_error(fields, "exp_rel");
  softmax.exp_eta = fields.number("exp_eta");
  softmax.exp_zero_exact = fields.word<bool>("exp_zero", {{"exact", true}, {"approx", false}});
  softmax.lazy = fields.word<bool>("rescale", {{"always", false}, {"lazy", true}});
  softmax.lazy_log2 = fields.number("lazy_log2");
  softmax.block = fields.integer("block", 1, kMostKeys);
  softmax.order = fields.word<BlockOrder>("order", {{"any", BlockOrder::any},
                                                    {"ascending", BlockOrder::ascending},
                                                    {"descending", BlockOrder::descending}});
  return softmax;
}

Contract::P read_p(const Json& json) {
  const Fields fields(json, "p", {"eta", "normalized", "round", "scale", "sum_from", "u"});
  Contract::P p;
  p.u = fields.relative_error("u");
  p.eta = fields.number("eta");
  p.scale = fields.number("scale");
  if (!(p.scale > 0)) throw BadInput("contract: p.scale must be positive");
  p.round = round_mode(fields);
  if (fields.json("normalized").is_boolean()) {
    p.normalized = fields.boolean("normalized") ? Tri::yes : Tri::no;
  } else {
    p.normalized = fields.word<Tri>("normalized", {{"any", Tri::any}});
  }
  p.sum_from_cast = fields.word<bool>("sum_from", {{"uncast", false}, {"cast", true}});
  return p;
}

Contract::Sum read_sum(const Json& json, const char* path) {
  const Fields fields(json, path, {"acc", "eta", "u"});
  return {accumulator(fields, "acc"), fields.relative_error("u"), fields.number("eta")};
}

Contract::Partials read_partials(const Json& json) {
  const Fields fields(
      json, "partials",
      {"count", "eta", "lse_u", "max_keys", "merge", "o_u", "run_u", "sigmoid_rel"});
  Contract::Partials partials;
  partials.count = count_or_spec(fields);
  if (!fields.json("merge").is_array() || fields.json("merge").empty()) {
    throw BadInput("contract: partials.merge must be a list of merge forms");
  }
  for (const auto& form : fields.json("merge")) {
    const Json one{{"merge", form}};
    partials.merge.push_back(Fields(one, "partials", {"merge"})
                                 .word<Merge>("merge", {{"none", Merge::none},
                                                        {"unnormalized", Merge::unnormalized},
                                                        {"lse_sequential", Merge::lse_sequential},
                                                        {"lse_once", Merge::lse_once},
                                                        {"lse_sigmoid", Merge::lse_sigmoid}}));
  }
  partials.o_u = fields.relative_error("o_u");
  partials.run_u = fields.relative_error("run_u");
  partials.eta = fields.number("eta");
  partials.lse_u = fields.relative_error("lse_u");
  partials.sigmoid_rel = fields.relative_error("sigmoid_rel");
  partials.max_keys = fields.integer("max_keys", 0, kMostKeys);
  return partials;
}

Contract::Lse read_lse(const Json& json, std::optional<LseBase>& declared) {
  const Fields fields(json, "lse", {"base", "log_abs", "log_rel", "max_roundings", "u"});
  Contract::Lse lse;
  declared = fields.word<std::optional<LseBase>>(
      "base", {{"e", LseBase::e}, {"2", LseBase::two}, {"spec", std::nullopt}});
  lse.base = declared.value_or(LseBase::e);
  lse.u = fields.relative_error("u");
  lse.max_roundings = static_cast<int>(fields.integer("max_roundings", 0, kMostRoundings));
  lse.log_rel = small_error(fields, "log_rel");
  lse.log_abs = small_error(fields, "log_abs");
  return lse;
}

Contract::BackwardRing read_backward_ring(const Json& json) {
  const Fields fields(json, "backward.ring", {"acc_u", "count", "store_u"});
  Contract::BackwardRing ring{};
  if (fields.json("count").is_object()) {
    const Fields chunks(fields.json("count"), "backward.ring.count", {"keys", "rows"});
    ring.count = 1;
    ring.count_rows = chunks.integer("rows", 1, kMostKeys);
    ring.count_keys = chunks.integer("keys", 1, kMostKeys);
  } else {
    ring.count = count_or_spec(fields);
  }
  ring.acc_u = fields.relative_error("acc_u");
  ring.store_u = fields.relative_error("store_u");
  return ring;
}

Contract::Backward read_backward(const Json& json) {
  const Fields fields(
      json, "backward",
      {"D_acc", "D_eta", "D_from", "dp_acc", "dp_eta", "dp_store", "dp_store_eta", "ds_eta",
       "ds_from_p", "ds_u", "grad_acc", "grad_eta", "grad_scale_roundings", "grad_store",
       "group_store_u", "mode", "p_from", "ring"});
  Contract::Backward b;
  b.mode = fields.word<BackwardMode>(
      "mode", {{"end_to_end", BackwardMode::end_to_end}, {"isolated", BackwardMode::isolated}});
  b.p_from = fields.word<ProbabilityFrom>("p_from", {{"recompute", ProbabilityFrom::recompute},
                                                     {"stored", ProbabilityFrom::stored},
                                                     {"any", ProbabilityFrom::any}});
  b.D_from = fields.word<DFrom>("D_from",
                                {{"out", DFrom::out}, {"p_dp", DFrom::p_dp}, {"any", DFrom::any}});
  b.dp_acc = accumulator(fields, "dp_acc");
  b.dp_store = fields.relative_errors("dp_store");
  b.dp_store_eta = fields.number("dp_store_eta");
  b.dp_eta = fields.number("dp_eta");
  b.D_acc = accumulator(fields, "D_acc");
  b.D_eta = fields.number("D_eta");
  b.ds_u = fields.relative_error("ds_u");
  b.ds_eta = fields.number("ds_eta");
  b.ds_from_cast = fields.word<bool>("ds_from_p", {{"uncast", false}, {"cast", true}});
  b.grad_acc = accumulator(fields, "grad_acc");
  b.grad_eta = fields.number("grad_eta");
  b.grad_scale_roundings =
      static_cast<int>(fields.integer("grad_scale_roundings", 0, kMostRoundings));
  b.grad_store = fields.relative_errors("grad_store");
  b.ring = read_backward_ring(fields.json("ring"));
  b.group_store_u = fields.relative_error("group_store_u");
  return b;
}

Contract::Inputs read_inputs(const Json& json) {
  const Fields fields(json, "inputs", {"dtype", "load_u", "load_u_do", "load_u_v"});
  return {dtype(fields), fields.relative_error("load_u"), fields.relative_error("load_u_v"),
          fields.relative_error("load_u_do")};
}

Contract::Out read_out(const Json& json) {
  const Fields fields(json, "out", {"dtype", "ftz", "overflow", "round"});
  return {
      dtype(fields), round_mode(fields),
      fields.word<Overflow>("overflow", {{"inf", Overflow::inf}, {"saturate", Overflow::saturate}}),
      fields.boolean("ftz")};
}

Contract read_fields(const Json& json, std::optional<LseBase>& declared_base) {
  const Fields fields(json, "",
                      {"schema", "name", "inputs", "score", "softmax", "p", "l", "pv", "partials",
                       "finish", "out", "lse", "backward", "prob"});
  fields.word<int>("schema", {{"ringproof.contract/1", 1}});
  Contract contract;
  contract.name = fields.text("name");
  contract.inputs = read_inputs(fields.json("inputs"));
  contract.score = read_score(fields.json("score"));
  contract.softmax = read_softmax(fields.json("softmax"));
  contract.p = read_p(fields.json("p"));
  contract.l = read_sum(fields.json("l"), "l");
  contract.pv = read_sum(fields.json("pv"), "pv");
  contract.partials = read_partials(fields.json("partials"));
  const Fields finish(fields.json("finish"), "finish", {"roundings", "u"});
  contract.finish = {static_cast<int>(finish.integer("roundings", 0, kMostRoundings)),
                     finish.relative_error("u")};
  contract.out = read_out(fields.json("out"));
  contract.lse = read_lse(fields.json("lse"), declared_base);
  contract.backward = read_backward(fields.json("backward"));
  const Fields prob(fields.json("prob"), "prob", {"failure"});
  contract.prob_failure = prob.relative_error("failure");
  return contract;
}

/// The ranks of the spec for a count left to it; a count that contradicts the spec is an error.
/// "bf16-flash+exp13" with its suffix for rings; of an object its fields.
std::string ring_name(const std::string& name) {
  const std::size_t end = std::min(name.find('+'), name.size());
  const std::string preset = name.substr(0, end);
  const auto presets = preset_names();
  const bool known = std::find(presets.begin(), presets.end(), preset) != presets.end();
  return known ? preset + "-ring" + name.substr(end) : "partials and backward.ring";
}

std::int64_t resolve_count(std::int64_t count, const Contract& contract, const Spec& spec,
                           const char* field) {
  if (count == kFromSpec) return spec.ranks.value_or(1);
  if (spec.ranks && *spec.ranks != count) {
    throw BadInput("contract: " + std::string(field) + " is " + std::to_string(count) +
                   ", but the spec says ranks " + std::to_string(*spec.ranks) +
                   "; a ring declares " + ring_name(contract.name));
  }
  return count;
}

/// Partials stored in fp16 underflow as fp16 does, also where the name (-lowp) leaves `eta` to
/// fp32.
void widen_partial_underflow(Contract& contract) {
  const double unit = format_of(DType::f16).unit();
  auto& partials = contract.partials;
  const bool narrow = partials.o_u == unit || partials.run_u == unit;
  if (contract.inputs.dtype == DType::f16 && narrow) {
    partials.eta = std::max(partials.eta, format_of(DType::f16).smallest() / 2);
  }
}

}  // namespace

Contract read_contract(const std::string& name_or_json, const Spec& spec) {
  const auto [expanded, shown_name] = expand_contract(name_or_json);
  std::optional<LseBase> declared_base;
  Contract contract = read_fields(expanded, declared_base);
  contract.hash = sha256_hex(expanded.dump()).substr(0, 12);
  widen_partial_underflow(contract);
  if (declared_base && spec.lse_base && *declared_base != *spec.lse_base) {
    throw BadInput("contract: lse.base and the spec's lse_base disagree");
  }
  contract.lse.base = declared_base.value_or(spec.lse_base.value_or(LseBase::e));
  auto& partials = contract.partials;
  partials.count = resolve_count(partials.count, contract, spec, "partials.count");
  const auto& merge = partials.merge;
  if (partials.count > 1 && std::find(merge.begin(), merge.end(), Merge::none) != merge.end()) {
    throw BadInput("contract: partials.merge holds \"none\", but there are " +
                   std::to_string(partials.count) + " partials");
  }
  auto& ring = contract.backward.ring;
  // A count of 1 says that the gradients are not sent round a ring, whatever the forward pass does.
  if (ring.count != 1)
    ring.count = resolve_count(ring.count, contract, spec, "backward.ring.count");
  contract.name = printable(shown_name);  // an object may come from a file, and reports print it
  return contract;
}

std::string expanded_json(const std::string& name_or_json) {
  const Json expanded = expand_contract(name_or_json).fields;
  std::optional<LseBase> ignored;
  read_fields(expanded, ignored);
  return expanded.dump();
}

std::string contract_hash(const std::string& name_or_json) {
  return sha256_hex(expanded_json(name_or_json)).substr(0, 12);
}

}  // namespace ringproof::oracle
