// Presets and big-u contracts of the adversary (contract_cases.hpp).
#include "tests/adversary/contract_cases.hpp"

#include "tests/adversary/contract_text.hpp"

namespace ringproof::adversary {

namespace {

constexpr const char* kTruncating16 = R"({"model":"mma","b":16,"neab":2})";
constexpr const char* kAny = R"({"model":"any_order","u":"0x1p-24","products":"exact"})";

RowOptions plain() { return {}; }
RowOptions capped(double cap) { return {.softcap = cap}; }
RowOptions with_bias() { return {.bias = true}; }
RowOptions with_both() { return {.bias = true, .alibi = true}; }

std::string pv_and_score(const std::string& acc) {
  return R"({"score":{"acc":)" + acc + R"(},"pv":{"acc":)" + acc + "}}";
}
std::string pv_only(const std::string& acc) { return R"({"pv":{"acc":)" + acc + "}}"; }
std::string pv_and_l(const std::string& acc) {
  return R"({"l":{"acc":)" + acc + R"(},"pv":{"acc":)" + acc + "}}";
}
std::string blocked(int block, const std::string& unit, const std::string& inner) {
  return R"({"model":"blocked","block":)" + std::to_string(block) + R"(,"u":")" + unit +
         R"(","inner":)" + inner + "}";
}

/// Every fp32 unit replaced by `unit`, exp and logarithm by twice that.
std::string big(const std::string& unit, const std::string& twice) {
  const std::string rounded = R"({"model":"any_order","u":")" + unit + R"(","products":"rounded"})";
  const std::string exact = R"({"model":"any_order","u":")" + unit + R"(","products":"exact"})";
  return R"({"base":"fp32","score":{"acc":)" + rounded + R"(,"scale_const_u":")" + unit +
         R"("},"softmax":{"u":")" + unit + R"(","exp_rel":")" + twice +
         R"(","block":16},"p":{"normalized":false},"l":{"acc":)" + exact + R"(,"u":")" + unit +
         R"("},"pv":{"acc":)" + rounded + R"(,"u":")" + unit + R"("},"finish":{"u":")" + unit +
         R"("},"lse":{"u":")" + unit + R"(","log_rel":")" + twice + R"(","log_abs":")" + unit +
         R"("}})";
}

}  // namespace

std::vector<ContractCase> preset_cases() {
  std::vector<ContractCase> cases;
  for (const std::string& preset : oracle::preset_names())
    cases.push_back(
        {.name = preset, .json = preset, .row = plain(), .gross_only = preset == "fp64"});
  for (const char* name :
       {"fp32-split4", "fp32-decode4", "fp32-ring4+sigmoid", "bf16-split4", "bf16-decode4",
        "bf16-ring8", "bf16-ring4+sigmoid", "bf16-ring4-lowp+sigmoid+run32", "bf16-flash+exp13",
        "bf16-flash+sumcast", "bf16-flash+asc", "bf16-flash+desc", "bf16-flash+block64+acc64",
        "fp32+block16+acc16", "fp32-gpu-ring4", "fp16-decode4",
        "bf16-decode4+block16+acc16+keys{}"}) {
    std::string text = name;
    // A partial of a decode kernel holds at most a quarter of the longest row, holes included.
    if (const auto at = text.find("{}"); at != std::string::npos) text.replace(at, 2, "600");
    cases.push_back({.name = text, .json = text, .row = plain()});
  }
  for (const char* name : {"bf16-ring4", "bf16-ring4-lowp", "fp32-ring4"})
    cases.push_back({.name = name, .json = name, .row = plain(), .may_know_ring = true});
  for (const char* name : {"fp32", "bf16-flash", "fp16-eager", "bf16-eager", "fp16-flash+softcap"})
    cases.push_back({.name = std::string(name) + ", softcap 20", .json = name, .row = capped(20)});
  for (const char* name :
       {"fp32", "fp32-simd", "bf16-eager", "fp16-eager", "bf16-flash+bias+biasstore"})
    cases.push_back(
        {.name = std::string(name) + ", bias, ALiBi", .json = name, .row = with_both()});
  return cases;
}

std::vector<ContractCase> big_unit_cases() {
  std::vector<ContractCase> cases;
  const std::string ten = big("0x1p-10", "0x1p-9"), eleven = big("0x1p-11", "0x1p-10");
  const std::string fma =
      R"({"softmax":{"arg":"fma_scaled"},"score":{"scale_roundings":0,"sink_roundings":2}})";
  const std::string scaled =
      R"({"softmax":{"arg":"fma_scaled","alpha_from":"scaled_max"},"score":{"scale_roundings":0,"sink_roundings":2}})";
  const std::string cast = R"({"p":{"u":"0x1p-6"}})";
  const auto add = [&](const std::string& name, const std::vector<std::string>& layers,
                       RowOptions row = {}, bool ring = false) {
    cases.push_back({.name = name, .json = layered(layers), .row = row, .may_know_ring = ring});
  };
  add("big-u sub", {ten});
  add("big-u sub_log2", {ten, R"({"softmax":{"arg":"sub_log2"}})"});
  add("big-u fma_scaled", {ten, fma});
  add("big-u scaled_max", {ten, scaled});
  add("big-u normalised P", {ten, cast, R"({"p":{"normalized":true}})"});
  add("big-u one block, exact dot products",
      {ten, fma,
       R"({"softmax":{"block":1048576},"score":{"acc":{"model":"any_order","u":"0","products":"exact"}}})"});
  add("big-u tree sums",
      {ten,
       R"({"p":{"normalized":true},"score":{"acc":{"model":"tree","u":"0x1p-10","products":"rounded","leaf":4}}})",
       pv_and_l(R"({"model":"tree","u":"0x1p-10","products":"exact","leaf":8})")},
      {.sinks = false});
  add("big-u ascending order", {ten, R"({"softmax":{"order":"ascending","block":4}})"});
  add("big-u descending order", {ten, R"({"softmax":{"order":"descending","block":4}})"});
  add("big-u lazy 8, sub_log2",
      {eleven, cast, R"({"softmax":{"rescale":"lazy","lazy_log2":8,"arg":"sub_log2"}})"});
  add("big-u lazy 8, sum of casts",
      {eleven, cast, R"({"softmax":{"rescale":"lazy","lazy_log2":8},"p":{"sum_from":"cast"}})"});
  add("big-u lazy 4, scaled_max",
      {eleven, cast, scaled, R"({"softmax":{"rescale":"lazy","lazy_log2":4}})"});
  add("big-u exp(0) != 1", {eleven, R"({"softmax":{"exp_zero":"approx"}})"});
  add("big-u P to zero", {eleven, R"({"p":{"u":"0x1p-6","round":"rz"}})"});
  add("P flushed at 2^-14, exp at 2^-20",
      {eleven, cast,
       R"({"p":{"eta":"0x1p-14"},"softmax":{"exp_eta":"0x1p-20"},"pv":{"eta":"0x1p-24"},"l":{"eta":"0x1p-24"}})"});
  add("mma16, big rho", {R"({"base":"bf16-io","softmax":{"block":16}})",
                         pv_only(R"({"model":"mma","b":16,"neab":-10})")});
  add("blocked16(mma4), big rho",
      {R"({"base":"bf16-io","softmax":{"block":16}})",
       pv_only(blocked(16, "0x1p-10", R"({"model":"mma","b":4,"neab":-12})"))});
  add("blocked16, l and pv big-u",
      {eleven, pv_and_l(blocked(16, "0x1p-10",
                                R"({"model":"any_order","u":"0x1p-10","products":"exact"})"))});
  add("ring3 mma4, big rho",
      {R"({"base":"bf16-ring3","softmax":{"block":4},"p":{"u":"0"}})",
       pv_and_l(R"({"model":"mma","b":4,"neab":-12})")},
      {}, true);
  add("big-u bias, ALiBi", {ten}, with_both());
  add("big-u softcap, bias", {ten, R"({"score":{"softcap":{"tanh_rel":"0x1p-9"}}})"},
      {.softcap = 20, .bias = true});
  add("fp16 softcap stores",
      {R"({"base":"fp16-eager","p":{"normalized":false},"score":{"softcap":{"store":["0x1p-11"]}}})"},
      capped(50));
  add("bf16 stores after both biases", {R"({"base":"bf16-eager"})"}, with_both());
  add("bf16 bias", {R"({"base":"bf16-flash"})"}, with_bias());
  for (const auto& [kind, count] : {std::pair{"unnormalized", 3},
                                    {"lse_sequential", 3},
                                    {"lse_once", 3},
                                    {"lse_sigmoid", 3},
                                    {"lse_sigmoid", 6}}) {
    const std::string partials =
        R"({"partials":{"merge":[")" + std::string(kind) + R"("],"count":)" +
        std::to_string(count) +
        R"(,"o_u":"0x1p-11","run_u":"0x1p-11","lse_u":"0x1p-11","sigmoid_rel":"0x1p-9"}})";
    const bool known = std::string(kind) == "unnormalized" || std::string(kind) == "lse_sequential";
    const std::string ending = std::string(kind) + " x" + std::to_string(count);
    add("big-u " + ending, {eleven, cast, partials}, {}, known);
    add("big-u fma " + ending, {eleven, cast, fma, partials}, {}, known);
  }
  add("merges that flush at 2^-30",
      {eleven,
       R"({"partials":{"merge":["lse_sequential","lse_once"],"count":4,"o_u":"0x1p-11","run_u":"0x1p-11","lse_u":"0x1p-11","eta":"0x1p-30"},"softmax":{"exp_eta":"0x1p-30"},"pv":{"eta":"0x1p-30"},"l":{"eta":"0x1p-30"}})"});
  add("sigmoid merges that flush at 2^-30",
      {eleven,
       R"({"partials":{"merge":["lse_sigmoid"],"count":4,"o_u":"0x1p-11","run_u":"0x1p-11","lse_u":"0x1p-11","sigmoid_rel":"0x1p-10","eta":"0x1p-30"},"softmax":{"exp_eta":"0x1p-30"},"pv":{"eta":"0x1p-30"},"l":{"eta":"0x1p-30"}})"});
  add("unnormalised merges that flush at 2^-30",
      {eleven,
       R"({"partials":{"merge":["unnormalized"],"count":4,"o_u":"0x1p-11","run_u":"0x1p-11","eta":"0x1p-30"},"softmax":{"exp_eta":"0x1p-30"},"pv":{"eta":"0x1p-30"},"l":{"eta":"0x1p-30"}})"},
      {}, true);
  add("bf16 ring8, O and LSE in bf16",
      {R"({"base":"bf16-ring8-lowp","partials":{"merge":["lse_sequential"],"lse_u":"0x1p-8"}})"},
      {}, true);
  add("bf16 ring4, O_r bf16, run fp32",
      {R"({"base":"bf16-ring4-lowp+run32","partials":{"merge":["lse_sequential"]}})"}, {}, true);
  add("bf16 ring4, normalised partials",
      {R"({"base":"bf16-ring4","p":{"normalized":true},"partials":{"merge":["lse_sequential"]}})"});
  add("all in fp16",
      {big("0x1p-11", "0x1p-10"),
       R"({"p":{"u":"0x1p-11","eta":"0x1p-25"},"softmax":{"exp_eta":"0x1p-25"},"pv":{"eta":"0x1p-25"},"l":{"eta":"0x1p-25"}})"});
  add("e4m3 P, S_P = 256", {R"({"base":"fp8-e4m3-flash"})"});
  add("e4m3 P, S_P = 1", {R"({"base":"fp8-e4m3-flash","p":{"scale":1}})"});
  add("fp32 underflow, normalised P", {R"({"base":"fp32","p":{"normalized":true}})"});
  add("bf16-flash, mma16 alone", {R"({"base":"bf16-flash"})", pv_and_score(kTruncating16)});
  add("bf16-flash, lazy 8",
      {R"({"base":"bf16-flash","softmax":{"rescale":"lazy","lazy_log2":8}})", pv_and_score(kAny)});
  return cases;
}

oracle::Contract read(const ContractCase& contract_case) {
  return oracle::read_contract(contract_case.json, oracle::Spec{});
}

oracle::Contract emulator_twin(const oracle::Contract& contract) {
  oracle::Contract twin = oracle::read_contract("fp64", oracle::Spec{});
  twin.partials.count = contract.partials.count;
  twin.partials.merge = contract.partials.merge;
  twin.partials.o_u = twin.partials.run_u = twin.partials.lse_u = 0x1p-53;
  twin.softmax.lazy = contract.softmax.lazy;
  twin.softmax.lazy_log2 = contract.softmax.lazy_log2;
  twin.score.sink_roundings = 2;
  return twin;
}

}  // namespace ringproof::adversary
