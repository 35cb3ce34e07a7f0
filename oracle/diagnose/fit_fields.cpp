// The ladders (fit_fields.hpp). Values are those that kernels have: powers of two for instruction
// errors, unit roundoffs of 16-bit types for stores.
#include "oracle/diagnose/fit_fields.hpp"

#include <algorithm>

namespace ringproof::oracle {

namespace {

using nlohmann::json;

std::string power(int exponent) { return "0x1p" + std::to_string(exponent); }

/// {"softmax": {"exp_rel": value}} for "softmax.exp_rel".
json at(const std::string& path, json value) {
  std::size_t end = path.size();
  json result = std::move(value);
  while (true) {
    const std::size_t dot = path.rfind('.', end - 1);
    const std::size_t first = dot == std::string::npos ? 0 : dot + 1;
    result = json{{path.substr(first, end - first), std::move(result)}};
    if (first == 0) return result;
    end = dot;
  }
}

FieldLadder powers(const std::string& field, int from, int to) {
  FieldLadder ladder{field, {}};
  for (int exponent = from; exponent <= to; ++exponent) {
    ladder.rungs.push_back(at(field, power(exponent)));
  }
  return ladder;
}

FieldLadder words(const std::string& field, const std::vector<json>& values) {
  FieldLadder ladder{field, {}};
  for (const json& value : values) ladder.rungs.push_back(at(field, value));
  return ladder;
}

/// Fields of the forward pass, which every answer depends on.
void add_forward(const Case& input, std::vector<FieldLadder>& ladders) {
  ladders.push_back(powers("softmax.exp_rel", -22, -8));
  ladders.push_back(words("softmax.exp_zero", {"approx"}));
  FieldLadder exponential{"softmax.exp_rel, softmax.exp_zero", {}};
  for (int exponent = -20; exponent <= -8; ++exponent) {
    json rung = at("softmax.exp_rel", power(exponent));
    rung["softmax"]["exp_zero"] = "approx";
    exponential.rungs.push_back(rung);
  }
  ladders.push_back(std::move(exponential));
  ladders.push_back(words("softmax.block", {16, 1}));
  ladders.push_back(words("p.sum_from", {"cast"}));
  ladders.push_back(words("p.normalized", {"any"}));
  ladders.push_back(powers("p.u", -11, -7));
  ladders.push_back(words("score.store", {json::array({power(-11)}), json::array({power(-8)}),
                                          json::array({power(-8), power(-8)})}));
  ladders.push_back(powers("score.scale_const_u", -20, -8));
  ladders.push_back(powers("inputs.load_u", -11, -8));
  ladders.push_back(powers("inputs.load_u_v", -11, -8));
  ladders.push_back(powers("l.u", -11, -8));
  ladders.push_back(powers("pv.u", -11, -8));
  ladders.push_back(powers("finish.u", -22, -10));
  ladders.push_back(words("partials.count", {2, 4, 8, 16}));
  for (const char* field : {"partials.o_u", "partials.run_u"}) {
    ladders.push_back(powers(field, -11, -8));
  }
  const Problem& p = input.problem;
  if (p.spec.softcap > 0) ladders.push_back(powers("score.softcap.tanh_rel", -20, -8));
  if (p.bias || p.alibi_slopes) {
    ladders.push_back(words("score.bias_roundings", {2, 3}));
    ladders.push_back(
        words("score.bias_store", {json::array({power(-11)}), json::array({power(-8)})}));
  }
  if (p.sinks) ladders.push_back(words("score.sink_roundings", {2, 3}));
}

void add_output(std::vector<FieldLadder>& ladders) {
  ladders.push_back(words("out.dtype", {"fp16", "bf16"}));
  ladders.push_back(words("out.round", {"faithful"}));
  ladders.push_back(words("out.ftz", {true}));
}

void add_lse(std::vector<FieldLadder>& ladders) {
  ladders.push_back(powers("lse.log_rel", -21, -8));
  ladders.push_back(powers("lse.log_abs", -21, -8));
  ladders.push_back(powers("lse.u", -22, -8));
  ladders.push_back(words("lse.base", {"2"}));
}

void add_backward(std::vector<FieldLadder>& ladders) {
  ladders.push_back(words("backward.p_from", {"stored", "any"}));
  ladders.push_back(words("backward.D_from", {"any"}));
  ladders.push_back(words("backward.ds_from_p", {"cast"}));
  ladders.push_back(powers("backward.ds_u", -11, -7));
  ladders.push_back(
      words("backward.dp_store", {json::array({power(-11)}), json::array({power(-8)})}));
  ladders.push_back(
      words("backward.grad_store", {json::array({power(-11)}), json::array({power(-8)})}));
  ladders.push_back(powers("backward.group_store_u", -11, -8));
  // Gradients summed on one device in chunks that are stored in 16 bits.
  FieldLadder sums{"backward.ring (16-bit gradient sums)", {}};
  for (const int exponent : {-11, -8}) {
    for (const int rows : {512, 256, 128, 64, 32, 16}) {
      json rung;
      rung["backward"]["ring"] = {{"count", {{"rows", rows}, {"keys", 512}}},
                                  {"acc_u", power(-24)},
                                  {"store_u", power(exponent)}};
      sums.rungs.push_back(rung);
    }
  }
  ladders.push_back(std::move(sums));
  ladders.push_back(words("backward.mode", {"isolated"}));
}

bool is_accumulator(const json& value) { return value.is_object() && value.contains("model"); }

void collect(const std::string& path, const json& from, const json& to,
             std::vector<std::pair<std::string, std::string>>& fields) {
  const bool inside = from.is_object() && to.is_object() && !is_accumulator(from);
  if (!inside) {
    if (from != to) fields.emplace_back(path, to.dump());
    return;
  }
  for (const auto& [name, value] : to.items()) {
    if (path.empty() && (name == "name" || name == "schema")) continue;
    const std::string below = path.empty() ? name : path + "." + name;
    collect(below, from.contains(name) ? from.at(name) : json(), value, fields);
  }
}

}  // namespace

std::vector<FieldLadder> field_ladders(const Case& input, AnswerKind kind) {
  std::vector<FieldLadder> ladders;
  if (kind != AnswerKind::out && kind != AnswerKind::lse) add_backward(ladders);
  if (kind == AnswerKind::lse) add_lse(ladders);
  add_forward(input, ladders);
  if (kind != AnswerKind::lse) add_output(ladders);
  return ladders;
}

json merged_contract(const json& contract, const json& rung) {
  if (!contract.is_object() || !rung.is_object() || is_accumulator(rung)) return rung;
  json merged = contract;
  for (const auto& [name, value] : rung.items()) {
    const bool whole = name == "ring" || !merged.contains(name);
    merged[name] = whole ? value : merged_contract(merged.at(name), value);
  }
  return merged;
}

std::vector<std::pair<std::string, std::string>> differing_fields(const json& from,
                                                                  const json& to) {
  std::vector<std::pair<std::string, std::string>> fields;
  collect("", from, to, fields);
  return fields;
}

}  // namespace ringproof::oracle
