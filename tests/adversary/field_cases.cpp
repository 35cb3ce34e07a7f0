// One field at a time: contracts in which everything is exact except one field, so that the bound
// consists of that field's term alone. Judged with the field it must hold; judged without it, it must
// break: every field is live, and none is counted in another's place.
#include "tests/adversary/contract_cases.hpp"
#include "tests/adversary/contract_text.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

/// A kernel that never rounds.
constexpr const char* kExact = R"({"base":"fp32",
 "score":{"acc":{"model":"any_order","u":"0","products":"exact"},"eta":"0","scale_const_u":"0","softcap":{"tanh_rel":"0","tanh_abs":"0"}},
 "softmax":{"u":"0","exp_rel":"0","exp_eta":"0","block":8},"p":{"u":"0","eta":"0","normalized":false},
 "l":{"acc":{"model":"any_order","u":"0","products":"exact"},"u":"0","eta":"0"},
 "pv":{"acc":{"model":"any_order","u":"0","products":"exact"},"u":"0","eta":"0"},
 "partials":{"eta":"0","sigmoid_rel":"0"},"finish":{"u":"0"},"lse":{"u":"0","log_rel":"0","log_abs":"0"},"out":{"dtype":"fp64"}})";

class FieldList {
 public:
  void add(const std::string& name, const std::vector<std::string>& layers,
           std::function<void(Contract&)> without, RowOptions row = {}) {
    std::vector<std::string> all = {kExact};
    all.insert(all.end(), layers.begin(), layers.end());
    list_.push_back({.contract = {.name = name, .json = layered(all), .row = row},
                     .without = std::move(without)});
  }
  std::vector<FieldCase> take() { return std::move(list_); }

 private:
  std::vector<FieldCase> list_;
};

std::string partials(const std::string& merge, const std::string& more) {
  return R"({"partials":{"merge":[")" + merge + R"("],"count":3)" + more + "}}";
}

void score_fields(FieldList& list) {
  list.add("inputs.load_u", {R"({"inputs":{"load_u":"0x1p-10"}})"},
           [](Contract& c) { c.inputs.load_u = 0; });
  list.add("inputs.load_u_v", {R"({"inputs":{"load_u_v":"0x1p-10"}})"},
           [](Contract& c) { c.inputs.load_u_v = 0; });
  const auto no_score_sum = [](Contract& c) { c.score.acc = {}; };
  list.add("score.acc any_order",
           {R"({"score":{"acc":{"model":"any_order","u":"0x1p-10","products":"exact"}}})"},
           no_score_sum);
  list.add("score.acc products",
           {R"({"score":{"acc":{"model":"any_order","u":"0x1p-10","products":"rounded"}}})"},
           [](Contract& c) { c.score.acc.products_rounded = false; });
  list.add("score.acc tree",
           {R"({"score":{"acc":{"model":"tree","u":"0x1p-10","products":"exact","leaf":4}}})"},
           no_score_sum);
  list.add(
      "score.acc blocked",
      {R"({"score":{"acc":{"model":"blocked","block":4,"u":"0x1p-10","inner":{"model":"any_order","u":"0x1p-10","products":"exact"}}}})"},
      no_score_sum);
  list.add("score.acc mma", {R"({"score":{"acc":{"model":"mma","b":4,"neab":-12}}})"},
           no_score_sum);
  list.add("score.eta", {R"({"score":{"eta":"0x1p-12"}})"}, [](Contract& c) { c.score.eta = 0; });
  list.add("score.scale_roundings", {R"({"softmax":{"u":"0x1p-10"}})"},
           [](Contract& c) { c.score.scale_roundings = 0; });
  list.add("score.scale_const_u", {R"({"score":{"scale_const_u":"0x1p-10"}})"},
           [](Contract& c) { c.score.scale_const_u = 0; });
  list.add("score.scale_const_u, softcap", {R"({"score":{"scale_const_u":"0x1p-10"}})"},
           [](Contract& c) { c.score.scale_const_u = 0; }, {.softcap = 20});
  list.add("score.scale_const_u, bias", {R"({"score":{"scale_const_u":"0x1p-10"}})"},
           [](Contract& c) { c.score.scale_const_u = 0; }, {.bias = true});
  list.add("score.store", {R"({"score":{"store":["0x1p-10"]}})"},
           [](Contract& c) { c.score.store.clear(); });
  list.add("score.store_eta", {R"({"score":{"store":["0"],"store_eta":"0x1p-12"}})"},
           [](Contract& c) { c.score.store_eta = 0; });
  const RowOptions cap = {.softcap = 20}, both = {.bias = true, .alibi = true};
  list.add(
      "score.softcap.roundings", {R"({"softmax":{"u":"0x1p-10"},"score":{"scale_roundings":0}})"},
      [](Contract& c) { c.score.softcap.roundings = 0; }, cap);
  list.add(
      "score.softcap.store", {R"({"score":{"softcap":{"store":["0x1p-10"]}}})"},
      [](Contract& c) { c.score.softcap.store.clear(); }, cap);
  list.add(
      "score.softcap.tanh_rel", {R"({"score":{"softcap":{"tanh_rel":"0x1p-10"}}})"},
      [](Contract& c) { c.score.softcap.tanh_rel = 0; }, cap);
  list.add(
      "score.softcap.tanh_abs", {R"({"score":{"softcap":{"tanh_abs":"0x1p-10"}}})"},
      [](Contract& c) { c.score.softcap.tanh_abs = 0; }, cap);
  list.add(
      "score.bias_roundings",
      {R"({"softmax":{"u":"0x1p-10"},"score":{"scale_roundings":0,"bias_roundings":2}})"},
      [](Contract& c) { c.score.bias_roundings = 0; }, both);
  list.add(
      "score.bias_store", {R"({"score":{"bias_store":["0x1p-10"]}})"},
      [](Contract& c) { c.score.bias_store.clear(); }, both);
  list.add(
      "score.bias_store underflow", {R"({"score":{"bias_store":["0"],"store_eta":"0x1p-12"}})"},
      [](Contract& c) { c.score.store_eta = 0; }, both);
  list.add(
      "score.sink_roundings",
      {R"({"softmax":{"u":"0x1p-10","arg":"fma_scaled"},"score":{"scale_roundings":0,"sink_roundings":2}})"},
      [](Contract& c) { c.score.sink_roundings = 0; });
}

void softmax_fields(FieldList& list) {
  const auto no_unit = [](Contract& c) { c.softmax.u = 0; };
  for (const char* arg : {"sub", "sub_log2", "fma_scaled"})
    list.add(std::string("softmax.u, ") + arg,
             {R"({"score":{"scale_roundings":0},"softmax":{"u":"0x1p-10","arg":")" +
              std::string(arg) + R"("}})"},
             no_unit);
  list.add(
      "softmax.u, scaled_max",
      {R"({"score":{"scale_roundings":0},"softmax":{"u":"0x1p-10","arg":"fma_scaled","alpha_from":"scaled_max"}})"},
      no_unit);
  list.add("softmax.exp_rel", {R"({"softmax":{"exp_rel":"0x1p-10"}})"},
           [](Contract& c) { c.softmax.exp_rel = 0; });
  list.add("softmax.exp_rel, order", {R"({"softmax":{"exp_rel":"0x1p-10","order":"ascending"}})"},
           [](Contract& c) { c.softmax.exp_rel = 0; });
  list.add("softmax.exp_zero", {R"({"softmax":{"exp_rel":"0x1p-10","exp_zero":"approx"}})"},
           [](Contract& c) { c.softmax.exp_zero_exact = true; });
  list.add("softmax.exp_eta", {R"({"softmax":{"exp_eta":"0x1p-20"}})"},
           [](Contract& c) { c.softmax.exp_eta = 0; });
  list.add(
      "softmax.lazy_log2",
      {R"({"score":{"scale_roundings":0},"softmax":{"u":"0x1p-10","rescale":"lazy","lazy_log2":8}})"},
      [](Contract& c) {
        c.softmax.lazy = false;
        c.softmax.lazy_log2 = 0;
      });
}

void sum_fields(FieldList& list) {
  list.add("p.u, rn", {R"({"p":{"u":"0x1p-6"}})"}, [](Contract& c) { c.p.u = 0; });
  list.add("p.u, rz", {R"({"p":{"u":"0x1p-6","round":"rz"}})"},
           [](Contract& c) { c.p.round = oracle::RoundMode::rn; });
  list.add("p.u, normalised", {R"({"p":{"u":"0x1p-6","normalized":true}})"},
           [](Contract& c) { c.p.u = 0; });
  list.add("p.eta", {R"({"p":{"eta":"0x1p-14"}})"}, [](Contract& c) { c.p.eta = 0; });
  list.add("p.eta, S_P = 256", {R"({"p":{"eta":"0x1p-10","scale":256}})"},
           [](Contract& c) { c.p.eta = 0; });
  list.add("p.eta, normalised", {R"({"p":{"eta":"0x1p-14","normalized":true}})"},
           [](Contract& c) { c.p.eta = 0; });
  list.add("p.sum_from", {R"({"p":{"u":"0x1p-6","sum_from":"cast"}})"},
           [](Contract& c) { c.p.sum_from_cast = false; });
  for (const char* sum : {"l", "pv"}) {
    const bool l = std::string(sum) == "l";
    const auto side = [l](Contract& c) -> Contract::Sum& { return l ? c.l : c.pv; };
    const std::string open = std::string("{\"") + sum + "\":{", close = "}}";
    const auto no_acc = [side](Contract& c) { side(c).acc = {}; };
    list.add(std::string(sum) + ".acc any_order",
             {open + R"("acc":{"model":"any_order","u":"0x1p-10","products":"exact"})" + close},
             no_acc);
    list.add(std::string(sum) + ".acc mma",
             {open + R"("acc":{"model":"mma","b":4,"neab":-12})" + close}, no_acc);
    list.add(
        std::string(sum) + ".acc blocked",
        {open +
         R"("acc":{"model":"blocked","block":8,"u":"0x1p-10","inner":{"model":"any_order","u":"0x1p-10","products":"exact"}})" +
         close},
        no_acc);
    list.add(std::string(sum) + ".acc tree",
             {open + R"("acc":{"model":"tree","u":"0x1p-10","products":"exact","leaf":8})" + close,
              R"({"p":{"normalized":true}})"},
             no_acc, {.sinks = false});
    list.add(std::string(sum) + ".u", {open + R"("u":"0x1p-10")" + close},
             [side](Contract& c) { side(c).u = 0; });
    list.add(std::string(sum) + ".eta", {open + R"("eta":"0x1p-20")" + close},
             [side](Contract& c) { side(c).eta = 0; });
  }
  list.add("pv.acc products",
           {R"({"pv":{"acc":{"model":"any_order","u":"0x1p-10","products":"rounded"}}})"},
           [](Contract& c) { c.pv.acc.products_rounded = false; });
  list.add("finish.roundings", {R"({"finish":{"u":"0x1p-10"}})"},
           [](Contract& c) { c.finish.roundings = 1; });
  list.add("finish, normalised", {R"({"finish":{"u":"0x1p-10"},"p":{"normalized":true}})"},
           [](Contract& c) { c.finish.roundings = 0; });
}

void lse_and_partials_fields(FieldList& list) {
  list.add("lse.u", {R"({"lse":{"u":"0x1p-10"}})"}, [](Contract& c) { c.lse.u = 0; });
  list.add("lse.log_rel", {R"({"lse":{"log_rel":"0x1p-10"}})"},
           [](Contract& c) { c.lse.log_rel = 0; });
  list.add("lse.log_abs", {R"({"lse":{"log_abs":"0x1p-10"}})"},
           [](Contract& c) { c.lse.log_abs = 0; });
  list.add(
      "lse.max_roundings",
      {R"({"score":{"scale_roundings":0},"softmax":{"u":"0x1p-10"},"lse":{"max_roundings":2}})"},
      [](Contract& c) { c.lse.max_roundings = 0; });
  for (const char* merge : {"unnormalized", "lse_sequential", "lse_once", "lse_sigmoid"}) {
    const auto add = [&](const std::string& field, std::vector<std::string> layers,
                         const std::string& more, std::function<void(Contract&)> without) {
      layers.push_back(partials(merge, more));
      list.add("partials." + field + ", " + merge, layers, std::move(without));
    };
    const std::string kind = merge;
    add("o_u", {}, R"(,"o_u":"0x1p-10")", [](Contract& c) { c.partials.o_u = 0; });
    if (kind != "lse_once")
      add("run_u", {}, R"(,"run_u":"0x1p-10")", [](Contract& c) { c.partials.run_u = 0; });
    add("eta", {}, R"(,"eta":"0x1p-20")", [](Contract& c) { c.partials.eta = 0; });
    if (kind != "unnormalized")
      add("lse_u", {}, R"(,"lse_u":"0x1p-10")", [](Contract& c) { c.partials.lse_u = 0; });
    add("count (exp_rel)", {R"({"softmax":{"exp_rel":"0x1p-10"}})"}, "",
        [](Contract& c) { c.softmax.exp_rel = 0; });
    add("count (softmax.u)", {R"({"score":{"scale_roundings":0},"softmax":{"u":"0x1p-10"}})"}, "",
        [](Contract& c) { c.softmax.u = 0; });
    add("count (exp_eta)", {R"({"softmax":{"exp_eta":"0x1p-20"}})"}, "",
        [](Contract& c) { c.softmax.exp_eta = 0; });
    add("count (log_rel)", {R"({"lse":{"log_rel":"0x1p-10"}})"}, "",
        [](Contract& c) { c.lse.log_rel = 0; });
    if (kind == "lse_sigmoid")
      add("sigmoid_rel", {}, R"(,"sigmoid_rel":"0x1p-10")",
          [](Contract& c) { c.partials.sigmoid_rel = 0; });
  }
}

}  // namespace

std::vector<FieldCase> field_cases() {
  FieldList list;
  score_fields(list);
  softmax_fields(list);
  sum_fields(list);
  lse_and_partials_fields(list);
  return list.take();
}

}  // namespace ringproof::adversary
