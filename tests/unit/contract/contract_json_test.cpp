// Names, variants, fields and hashes of contracts.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "oracle/case/error.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/contract/contract_name.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::oracle;
using nlohmann::json;

namespace {

json expanded(const std::string& contract) { return json::parse(expanded_json(contract)); }

/// The message of the error that reading `contract` gives; empty if there is none.
std::string error_of(const std::string& contract, const Spec& spec = {}) {
  try {
    read_contract(contract, spec);
  } catch (const BadInput& error) {
    return error.what();
  }
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a contract without parts on several ranks is refused by the name of its ring") {
  Spec spec;
  spec.ranks = 4;
  try {
    read_contract("bf16-flash+exp13", spec);
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("bf16-flash-ring+exp13") != std::string::npos);
  }
}

TEST_CASE("every published hash is reproduced") {
  const std::pair<const char*, const char*> published[] = {
      {"fp64", "309f84dabfec"},         {"fp32", "52648d2fd019"},
      {"fp32-simd", "9f75b72b422a"},    {"fp32-gpu", "341bbbc7c14f"},
      {"tf32-flash", "37d60ee6ae38"},   {"fp16-flash", "0d338cbd0673"},
      {"bf16-flash", "1fa1df457384"},   {"fp8-e4m3-flash", "b282c121f935"},
      {"fp16-eager", "c0f4d726b8d8"},   {"bf16-eager", "e258038ca5c6"},
      {"bf16-unfused", "8b1a6d7cedf2"}, {"bf16-io", "5f62fa426a24"},
      {"fp16-io", "8f916e9955a8"},      {"bf16-p16", "cbe8817c333c"},
      {"bf16-ring4", "2eb6f6876385"},   {"bf16-flash+block128+acc128", "c4b66e98f525"},
      {"fp32-ring", "e5bd16c0a3ae"},    {"bf16-ring4-lowp+sigmoid+run32", "16d7bf9e89c3"},
  };
  for (const auto& [name, hash] : published) {
    CAPTURE(name);
    CHECK(contract_hash(name) == hash);
    CHECK(read_contract(name, Spec{}).hash == hash);
  }
}

TEST_CASE("the embedded presets are the shared ones") {
  const std::string path = std::string(RINGPROOF_SOURCE) + "/../shared/presets.json";
  std::ifstream file(path);
  if (!file) {
    WARN("skipped: ../shared/presets.json is absent");
    return;
  }
  CHECK(json::parse(file) == json::parse(presets_text));
  CHECK(preset_names().size() == json::parse(presets_text).size());
  CHECK(preset_names().front() == "fp64");
}

TEST_CASE("names set the fields they stand for") {
  const json split = expanded("bf16-split8");
  CHECK(split["partials"]["count"] == 8);
  CHECK(split["partials"]["merge"] == json({"unnormalized"}));
  CHECK(split["partials"]["lse_u"] == "0x1p-24");
  CHECK(split["backward"]["ring"]["count"] == 1);
  CHECK(expanded("fp64-decode")["partials"]["merge"] == json({"lse_once"}));
  CHECK(expanded("fp64-decode")["partials"]["o_u"] == "0x1p-53");
  CHECK(expanded("fp64-decode")["partials"]["count"] == "spec");
  const json ring = expanded("fp16-ring-lowp");
  CHECK(ring["partials"]["o_u"] == "0x1p-11");
  CHECK(ring["partials"]["run_u"] == "0x1p-11");
  CHECK(ring["partials"]["lse_u"] == "0x1p-24");
  CHECK(ring["backward"]["ring"] ==
        json({{"count", "spec"}, {"acc_u", "0x1p-24"}, {"store_u", "0x1p-11"}}));
  CHECK(ring["name"] == "fp16-ring-lowp");
  CHECK(expanded("bf16-ring4")["inputs"] == expanded("bf16-flash")["inputs"]);
  CHECK(expanded("bf16-io-ring4")["p"]["u"] == "0");
}

TEST_CASE("variants set the fields they stand for") {
  CHECK(expanded("fp32+block64")["softmax"]["block"] == 64);
  const json acc = expanded("fp32+acc64");
  CHECK(acc["l"]["acc"]["model"] == "blocked");
  CHECK(acc["l"]["acc"]["inner"] == expanded("fp32")["l"]["acc"]);
  CHECK(acc["backward"]["grad_acc"]["block"] == 64);
  CHECK(expanded("bf16-flash+acc64")["pv"]["acc"]["of"][1]["inner"]["model"] == "mma");
  CHECK(expanded("bf16-split+keys512")["partials"]["max_keys"] == 512);
  CHECK(expanded("fp32+asc")["softmax"]["order"] == "ascending");
  CHECK(expanded("fp32+desc")["softmax"]["order"] == "descending");
  CHECK(expanded("fp32-ring+sigmoid")["partials"]["merge"] == json({"lse_sigmoid"}));
  CHECK(expanded("bf16-ring-lowp+run32")["partials"]["run_u"] == "0x1p-24");
  const json exp13 = expanded("bf16-flash+exp13");
  CHECK(exp13["softmax"]["exp_rel"] == "0x1p-13");
  CHECK(exp13["softmax"]["exp_zero"] == "approx");
  CHECK(expanded("fp32+sumcast")["p"]["sum_from"] == "cast");
  CHECK(expanded("fp32+softcap")["score"]["softcap"]["tanh_rel"] == "0x1p-10");
  CHECK(expanded("fp32+bias")["score"]["bias_roundings"] == 2);
  CHECK(expanded("fp16-flash+biasstore")["score"]["bias_store"] == json({"0x1p-11"}));
  CHECK(expanded("fp32+isolated")["backward"]["mode"] == "isolated");
  const json ftz = expanded("fp32+ftz");
  CHECK(ftz["out"]["ftz"] == true);
  CHECK(ftz["p"]["eta"] == "0x1p-126");
  CHECK(expanded("fp16-flash+ftz")["p"]["eta"] == "0x1p-25");
}

TEST_CASE("gradient chunks read the block length that any other variant sets") {
  const json chunks = expanded("bf16-flash+gacc32+block512");
  CHECK(chunks["backward"]["ring"]["count"] == json({{"rows", 32}, {"keys", 512}}));
  CHECK(chunks["backward"]["ring"]["store_u"] == "0x1p-8");
  const Contract contract = read_contract("bf16-flash+exp13+block512+gacc64", Spec{});
  CHECK(contract.backward.ring.count == 1);
  CHECK(contract.backward.ring.count_rows == 64);
  CHECK(contract.backward.ring.count_keys == 512);
}

TEST_CASE("an object with a base replaces fields, and lists and accumulators whole") {
  const std::string text =
      R"({"base":"bf16-flash","softmax":{"block":64},"score":{"store":["0x1p-8"]},)"
      R"("pv":{"acc":{"model":"any_order","u":"0x1p-24","products":"exact"}}})";
  json expected = expanded("bf16-flash");
  expected["softmax"]["block"] = 64;
  expected["score"]["store"] = {"0x1p-8"};
  expected["pv"]["acc"] = {{"model", "any_order"}, {"u", "0x1p-24"}, {"products", "exact"}};
  CHECK(expanded(text) == expected);
  CHECK(holds(error_of(R"({"base":"fp32","pv":{"acc":{"u":"0x1p-10"}}})"), "pv.acc.model"));
  // An object may stand on an object.
  CHECK(expanded(R"({"base":)" + text + R"(,"softmax":{"block":16}})")["pv"]["acc"] ==
        expected["pv"]["acc"]);
  CHECK(contract_hash(R"({"base":"bf16-flash"})") == contract_hash("bf16-flash"));
  // The full object is a contract without a base.
  CHECK(contract_hash(expanded_json("tf32-flash")) == contract_hash("tf32-flash"));
}

TEST_CASE("an object is called by its base's name only if it says the same") {
  const auto called = [](const std::string& text) { return read_contract(text, Spec{}).name; };
  CHECK(called("fp32") == "fp32");
  CHECK(called(R"({"base":"fp32"})") == "fp32");
  CHECK(called(R"({"base":"fp32","p":{}})") == "fp32");
  const std::string changed = R"({"base":"fp32","p":{"u":"0x1p-1"}})";
  CHECK(called(changed) == "fp32, changed");
  CHECK(called(R"({"base":"bf16-flash+exp13","softmax":{"block":7}})") ==
        "bf16-flash+exp13, changed");
  CHECK(called(R"({"base":)" + changed + R"(,"softmax":{"block":16}})") == "fp32, changed");
  // A name of its own is kept, also under an object that has none, but not the name of another.
  const std::string mine = R"({"base":"fp32","name":"mine","p":{"u":"0x1p-1"}})";
  CHECK(called(mine) == "mine");
  CHECK(called(R"({"base":)" + mine + "}") == "mine");
  CHECK(called(R"({"base":)" + mine + R"(,"softmax":{"block":16}})") == "mine, changed");
  CHECK(called(R"({"base":"fp32","name":"bf16-io"})") == "bf16-io, changed");
  // The object written out is called as before, and hashes stay those of the object.
  CHECK(called(expanded_json("bf16-ring4")) == "bf16-ring4");
  CHECK(called(expanded_json(changed)) == "fp32, changed");
  CHECK(contract_hash(changed) == "7c13ac7a5f12");
  CHECK(called(R"({"base":"fp32","name":"\u001b[2J\n"})") == "\\x1b[2J\\x0a");
}

TEST_CASE("errors name the field and the nearest known one") {
  CHECK(holds(error_of(R"({"base":"fp32","softmax":{"blok":64}})"), "\"blok\" in softmax"));
  CHECK(holds(error_of(R"({"base":"fp32","softmax":{"blok":64}})"), "block"));
  CHECK(holds(error_of(R"({"base":"fp32","sofmax":{}})"), "softmax"));
  CHECK(holds(error_of("bf16-falsh"), "bf16-flash"));
  CHECK(holds(error_of("bf16-flash+blck64"), "nearest known: +block64"));
  // What resembles nothing is not answered with whatever comes first.
  for (const char* strange : {"nosuch", "", "fp32+nothing"}) {
    INFO(strange);
    CHECK(holds(error_of(strange), "unknown"));
    CHECK_FALSE(holds(error_of(strange), "nearest"));
  }
  CHECK(holds(error_of(R"({"base":"fp32","softmax":{"arg":"subb"}})"), "nearest known: sub"));
  json missing = expanded("fp32");
  missing["finish"].erase("u");
  CHECK(holds(error_of(missing.dump()), "missing field finish.u"));
  missing.erase("finish");
  CHECK(holds(error_of(missing.dump()), "missing field finish"));
}

TEST_CASE("values of the wrong kind or range are refused") {
  const char* wrong[] = {
      R"({"base":"fp32","softmax":{"u":"0.5"}})",
      R"({"base":"fp32","softmax":{"u":0.5}})",
      R"({"base":"fp32","softmax":{"u":"0x1p-2000000"}})",
      R"({"base":"fp32","softmax":{"u":"-0x1p-24"}})",
      R"({"base":"fp32","softmax":{"u":"0x1p-6"}})",
      R"({"base":"fp32","softmax":{"u":null}})",
      R"({"base":"fp32","softmax":{"u":"nan"}})",
      R"({"base":"fp32","p":{"u":"0x1p0"}})",
      R"({"base":"fp32","p":{"u":"0x1.00000000000001p-8"}})",
      R"({"base":"fp32","p":{"u":"0x1.0000000000001p-8"}})",
      R"({"base":"fp32","p":{"scale":0}})",
      R"({"base":"fp32","p":{"scale":9007199254740993}})",
      R"({"base":"fp32","p":{"normalized":"maybe"}})",
      R"({"base":"fp32","p":{"normalized":1}})",
      R"({"base":"fp32","softmax":{"block":0}})",
      R"({"base":"fp32","softmax":{"block":-1}})",
      R"({"base":"fp32","softmax":{"block":"64"}})",
      R"({"base":"fp32","softmax":{"block":18446744073709551615}})",
      R"({"base":"fp32","softmax":7})",
      R"({"base":"fp32","out":{"ftz":"true"}})",
      R"({"base":"fp32","score":{"store":"0x1p-8"}})",
      R"({"base":"fp32","partials":{"merge":[]}})",
      R"({"base":"fp32","partials":{"merge":["lse"]}})",
      R"({"base":"fp32","partials":{"count":2}})",
      R"({"base":"fp32","l":{"acc":{"model":"max","of":[]}}})",
      R"({"base":"fp32","l":{"acc":)"
      R"({"model":"any_order","u":"0x1p-24","products":"exact","leaf":3}}})",
      R"({"base":"fp32","schema":"ringproof.contract/2"})",
      R"({"base":7})",
      R"({"base":"fp32")",
      R"({"base":"fp32","base":"fp64"})",
      R"({"base":"fp32","name":"a","name":"b"})",
      "",
      "[]",
      "bf16-flash+",
      "bf16-flash+block",
      "bf16-flash+block0",
      "bf16-flash+block064",
      "bf16-flash+block99999999999999999999",
      "bf16-flash+asc7",
      "bf16-flash+asc+desc",
      "bf16-flash+block64+block64",
      "bf16-ring0",
      "bf16-flash-lowp",
      "bf16-split4-lowp",
      "bf16-ring4+gacc32",
      "fp32+gacc32",
      "fp32 ",
  };
  for (const char* contract : wrong) {
    CAPTURE(contract);
    CHECK(holds(error_of(contract), "contract: "));
  }
}

TEST_CASE("hostile nesting is refused, not followed") {
  std::string deep;
  for (int level = 0; level < 100000; ++level) deep += R"({"base":)";
  CHECK(holds(error_of(deep), "contract: "));
  std::string inner = R"({"model":"any_order","u":"0x1p-24","products":"exact"})";
  for (int level = 0; level < 40; ++level) inner = R"({"model":"max","of":[)" + inner + "]}";
  CHECK(holds(error_of(R"({"base":"fp32","l":{"acc":)" + inner + "}}"), "nested"));
}

TEST_CASE("what a contract leaves to the spec is taken from it") {
  Spec spec;
  spec.ranks = 4;
  spec.lse_base = LseBase::two;
  const Contract contract = read_contract("bf16-ring", spec);
  CHECK(contract.partials.count == 4);
  CHECK(contract.backward.ring.count == 4);
  CHECK(contract.lse.base == LseBase::two);
  CHECK(contract.hash == contract_hash("bf16-ring"));
  CHECK(read_contract("bf16-ring", Spec{}).partials.count == 1);
  CHECK(read_contract("bf16-ring4", spec).partials.count == 4);
}

TEST_CASE("a contract and a spec that disagree are an error") {
  Spec spec;
  spec.ranks = 2;
  CHECK(holds(error_of("bf16-ring4", spec), "ranks 2"));
  CHECK(holds(error_of("bf16-flash", spec), "ranks 2"));
  CHECK(error_of("bf16-split2", spec).empty());
  spec.lse_base = LseBase::e;
  CHECK(holds(error_of(R"({"base":"bf16-split","lse":{"base":"2"}})", spec), "lse_base"));
  CHECK(error_of(R"({"base":"bf16-split","lse":{"base":"e"}})", spec).empty());
}

TEST_CASE("numbers are read exactly, or upwards where binary64 has no such number") {
  CHECK(read_contract("bf16-flash", Spec{}).p.u == 0x1p-8);
  CHECK(read_contract("fp64", Spec{}).p.eta == 0x1p-1074);  // declared 2^-1075
  const Contract contract =
      read_contract(R"({"base":"fp32","p":{"scale":256,"u":"0x1.8p-7","eta":"0x0p+0"}})", Spec{});
  CHECK(contract.p.scale == 256);
  CHECK(contract.p.u == 0x1.8p-7);
  CHECK(contract.p.eta == 0);
}

TEST_CASE("partials stored in fp16 underflow as fp16 does") {
  CHECK(read_contract("fp16-ring4-lowp", Spec{}).partials.eta == 0x1p-25);
  CHECK(read_contract("fp16-ring4", Spec{}).partials.eta == 0x1p-126);
  CHECK(read_contract("bf16-ring4-lowp", Spec{}).partials.eta == 0x1p-126);
  const char* run = R"({"base":"fp16-ring4","partials":{"run_u":"0x1p-11"}})";
  CHECK(read_contract(run, Spec{}).partials.eta == 0x1p-25);
  CHECK(expanded("fp16-ring4-lowp")["partials"]["eta"] == "0x1p-126");  // the hash is the name's
}
