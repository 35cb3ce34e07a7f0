// The ladders (fit_fields.hpp). Values are those that kernels have: powers of two for instruction
// errors, unit roundoffs of 16-bit types for stores.
#include "oracle/diagnose/fit_fields.hpp"

#include <algorithm>

#include "oracle/diagnose/declared_elsewhere.hpp"

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

FieldLadder alternatives(const std::string& field, const std::vector<json>& values) {
  FieldLadder ladder = words(field, values);
  ladder.loosens = false;
  return ladder;
}

/// Unit roundoffs of the 16-bit type that the contract's inputs have; of both if they have none.
std::vector<std::string> narrow_units(const json& declared) {
  const std::string dtype = declared.at("inputs").at("dtype");
  if (dtype == "bf16") return {power(-8)};
  if (dtype == "fp16") return {power(-11)};
  return {power(-11), power(-8)};
}

/// A list with one store of each unit, or with two: [[u], [u, u], ...].
std::vector<json> stores(const std::vector<std::string>& units, int most) {
  std::vector<json> lists;
  for (const std::string& unit : units) {
    for (int times = 1; times <= most; ++times) {
      lists.push_back(json(std::vector<std::string>(static_cast<std::size_t>(times), unit)));
    }
  }
  return lists;
}

FieldLadder units(const std::string& field, const std::vector<std::string>& values) {
  return words(field, {values.begin(), values.end()});
}

/// Results of parts of the keys, as a ring or a split kernel merges them.
FieldLadder parts_ladder() {
  FieldLadder ladder{"partials", {}};
  for (const int count : {2, 4, 8, 16}) {
    json rung;
    rung["partials"] = {{"count", count},
                        {"merge", {"unnormalized", "lse_sequential"}},
                        {"o_u", power(-24)},
                        {"run_u", power(-24)},
                        {"lse_u", power(-24)}};
    ladder.rungs.push_back(rung);
  }
  return ladder;
}

/// Fields of the forward pass, which every answer depends on.
void add_forward(const Case& input, const json& declared, std::vector<FieldLadder>& ladders) {
  const std::vector<std::string> narrow = narrow_units(declared);
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
  ladders.push_back(words("score.store", stores(narrow, 2)));
  ladders.push_back(powers("score.scale_const_u", -20, -8));
  ladders.push_back(powers("inputs.load_u", -11, -8));
  ladders.push_back(powers("inputs.load_u_v", -11, -8));
  ladders.push_back(powers("l.u", -11, -8));
  ladders.push_back(powers("pv.u", -11, -8));
  ladders.push_back(powers("finish.u", -22, -10));
  if (declared.at("partials").at("count") == 1) {
    ladders.push_back(parts_ladder());
  } else {
    ladders.push_back(units("partials.o_u", narrow));
    ladders.push_back(units("partials.run_u", narrow));
    ladders.push_back(units("partials.lse_u", narrow));
  }
  const Problem& p = input.problem;
  if (p.spec.softcap > 0) ladders.push_back(powers("score.softcap.tanh_rel", -20, -8));
  if (p.bias || p.alibi_slopes) {
    ladders.push_back(words("score.bias_roundings", {2, 3}));
    ladders.push_back(words("score.bias_store", stores(narrow, 1)));
  }
  if (p.sinks) ladders.push_back(words("score.sink_roundings", {2, 3}));
}

void add_output(std::vector<FieldLadder>& ladders) {
  ladders.push_back(alternatives("out.dtype", {"fp16", "bf16"}));
  ladders.push_back(words("out.round", {"faithful"}));
  ladders.push_back(words("out.ftz", {true}));
}

/// The base in which the declared contract, or the spec it leaves that to, has the LSE.
std::string lse_base(const Spec& spec, const json& declared) {
  const std::string base = declared.at("lse").at("base");
  if (base != "spec") return base;
  return spec.lse_base == LseBase::two ? "2" : "e";
}

void add_lse(const Spec& spec, const json& declared, std::vector<FieldLadder>& ladders) {
  ladders.push_back(powers("lse.log_rel", -21, -8));
  ladders.push_back(powers("lse.log_abs", -21, -8));
  ladders.push_back(powers("lse.u", -22, -8));
  ladders.push_back(alternatives("lse.base", {lse_base(spec, declared) == "2" ? "e" : "2"}));
}

/// u_gp of (30) to (32): gradients that are stored in 16 bits before their sum is complete, heads
/// of a group (group_store_u) or chunks of rows of one device (ring). One constant of the theorem,
/// so one ladder: by how often a gradient is stored.
FieldLadder gradient_sums(const Problem& p, const json& declared) {
  FieldLadder sums{"backward.ring, backward.group_store_u (16-bit gradient sums)", {}};
  const json& ring = declared.at("backward").at("ring");
  for (const std::string& unit : narrow_units(declared)) {
    if (p.group() > 1) sums.rungs.push_back(at("backward.group_store_u", unit));
    if (ring.at("count") != 1) {
      json stored = ring;
      stored["store_u"] = unit;
      sums.rungs.push_back(at("backward.ring", stored));
      continue;
    }
    for (const int rows : {512, 256, 128, 64, 32, 16}) {
      if (rows / 2 >= p.queries) continue;  // one chunk, as the size before
      json rung;
      rung["backward"]["ring"] = {
          {"count", {{"rows", rows}, {"keys", 512}}}, {"acc_u", power(-24)}, {"store_u", unit}};
      sums.rungs.push_back(rung);
    }
  }
  return sums;
}

void add_backward(const Case& input, const json& declared, std::vector<FieldLadder>& ladders) {
  const std::vector<std::string> narrow = narrow_units(declared);
  ladders.push_back(gradient_sums(input.problem, declared));
  ladders.push_back(words("backward.p_from", {"any"}));
  ladders.push_back(words("backward.D_from", {"any"}));
  ladders.push_back(words("backward.ds_from_p", {"cast"}));
  ladders.push_back(powers("backward.ds_u", -11, -7));
  ladders.push_back(words("backward.dp_store", stores(narrow, 1)));
  ladders.push_back(words("backward.grad_store", stores(narrow, 1)));
  ladders.push_back(words("backward.grad_scale_roundings", {2, 3}));
  ladders.push_back(alternatives("backward.mode", {"isolated"}));
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

std::vector<FieldLadder> field_ladders(const Case& input, const json& declared, AnswerKind kind) {
  std::vector<FieldLadder> all;
  if (kind != AnswerKind::out && kind != AnswerKind::lse) add_backward(input, declared, all);
  if (kind == AnswerKind::lse) add_lse(input.problem.spec, declared, all);
  add_forward(input, declared, all);
  if (kind != AnswerKind::lse) add_output(all);
  std::vector<FieldLadder> ladders;
  for (FieldLadder& ladder : all) {
    const auto useless = [&](const json& rung) {
      return ladder.loosens ? !covers(rung, declared) || covers(declared, rung)
                            : merged_contract(declared, rung) == declared;
    };
    auto& rungs = ladder.rungs;
    rungs.erase(std::remove_if(rungs.begin(), rungs.end(), useless), rungs.end());
    if (!rungs.empty()) ladders.push_back(std::move(ladder));
  }
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
