// The table of semantics (recipe.hpp). Every entry is chosen against faults that notes.json names.
#include <stdexcept>

#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {
namespace {

void causal(Recipe& r, Causal alignment, std::int64_t queries) {
  r.spec.causal = alignment;
  r.queries = queries < 1 ? 1 : queries;
}

void grouped(Recipe& r, std::int64_t heads, std::int64_t kv_heads) {
  r.heads = heads;
  r.kv_heads = kv_heads;
}

void window(Recipe& r, std::int64_t left, std::int64_t right) {
  r.spec.window_left = left;
  r.spec.window_right = right;
}

/// ln 2, the scale that turns integer scores into powers of two.
constexpr double kLogTwo = 0x1.62e42fefa39efp-1;

const Semantics kTable[] = {
    {"full", [](Recipe&) {}},
    {"causal", [](Recipe& r) { causal(r, Causal::top_left, r.keys); }},
    {"top-left-short", [](Recipe& r) { causal(r, Causal::top_left, r.keys / 2 + 1); }},
    {"top-left-long", [](Recipe& r) { causal(r, Causal::top_left, r.keys + 7); }},
    {"bottom-right-short", [](Recipe& r) { causal(r, Causal::bottom_right, r.keys / 3 + 1); }},
    {"bottom-right-long", [](Recipe& r) { causal(r, Causal::bottom_right, r.keys + 5); }},
    {"window-causal",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       window(r, 5, 0);
     }},
    {"window-both", [](Recipe& r) { window(r, 3, 2); }},
    {"window-zero", [](Recipe& r) { window(r, 0, 0); }},
    {"window-offset",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys / 2 + 1);
       window(r, 7, -1);
     }},
    {"lengths",
     [](Recipe& r) {
       r.batches = 4;
       r.rows = RowPlan::lengths;
     }},
    {"documents",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       r.rows = RowPlan::documents;
     }},
    {"documents-apart",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys / 2 + 3);
       r.rows = RowPlan::documents_apart;
     }},
    {"zigzag",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       r.rows = RowPlan::zigzag;
     }},
    {"striped",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       r.rows = RowPlan::striped;
     }},
    {"documents-permuted",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       r.rows = RowPlan::permuted;
     }},
    {"mask", [](Recipe& r) { r.mask = MaskPlan::random; }},
    {"late-start", [](Recipe& r) { r.mask = MaskPlan::late_start; }},
    {"hidden-peak", [](Recipe& r) { r.mask = MaskPlan::hides_peak; }},
    {"bias", [](Recipe& r) { r.bias = BiasPlan::dense; }},
    {"bias-keys",
     [](Recipe& r) {
       r.bias = BiasPlan::keys;
       r.batches = 2;
     }},
    {"alibi",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys / 2 + 1);
       r.alibi = true;
       grouped(r, 3, 3);
     }},
    {"alibi-batch",
     [](Recipe& r) {
       r.batches = 2;
       r.alibi = r.alibi_per_batch = true;
     }},
    {"sinks-near", [](Recipe& r) { r.sinks = SinkPlan::near; }},
    {"sinks-above", [](Recipe& r) { r.sinks = SinkPlan::above; }},
    {"sinks-empty",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys + 5);
       r.sinks = SinkPlan::below;
     }},
    {"softcap",
     [](Recipe& r) {
       r.mask = MaskPlan::hides_peak;
       r.spec.softcap = 1;
     }},
    {"softcap-bias",
     [](Recipe& r) {
       r.spec.softcap = 20;
       r.bias = BiasPlan::dense;
     }},
    {"grouped", [](Recipe& r) { grouped(r, 6, 2); }},
    {"grouped-causal",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys / 2);
       grouped(r, 12, 3);
     }},
    {"one-kv-head", [](Recipe& r) { grouped(r, 4, 1); }},
    {"scale", [](Recipe& r) { r.spec.scale = 0x1.3p-3; }},
    {"scale-ln2", [](Recipe& r) { r.spec.scale = kLogTwo; }},
    {"value-width",
     [](Recipe& r) {
       r.head_dim = 40;
       r.value_dim = 24;
     }},
    {"bnhd",
     [](Recipe& r) {
       r.spec.layout = AxisOrder::bnhd;
       r.heads = r.kv_heads = 3;
       r.queries = r.keys / 2 + 1;
     }},
    {"nhd",
     [](Recipe& r) {
       causal(r, Causal::top_left, r.keys);
       r.spec.layout = AxisOrder::nhd;
       r.heads = r.kv_heads = 3;
       r.rows = RowPlan::documents;
     }},
    {"factors",
     [](Recipe& r) {
       r.factors = true;
       r.dtype = DType::f8_e4m3;
     }},
    {"empty-nan",
     [](Recipe& r) {
       causal(r, Causal::bottom_right, r.keys + 3);
       r.spec.empty_row = EmptyRow::nan;
     }},
    {"one-query", [](Recipe& r) { causal(r, Causal::bottom_right, 1); }},
    {"one-key", [](Recipe& r) { r.keys = 1; }},
};

}  // namespace

std::span<const Semantics> semantics() { return kTable; }

const Semantics& semantics(std::string_view name) {
  for (const Semantics& one : semantics()) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no semantics is called " + std::string(name));
}

}  // namespace ringproof::oracle
