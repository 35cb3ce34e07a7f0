// A numeric contract: which roundings a kernel declares (docs/contract.md, section "fields").
// Plain data; the JSON form, names, variants and hash are in contract_json.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/dtype.hpp"
#include "oracle/case/spec.hpp"

namespace ringproof::oracle {

/// How a sum or dot product is accumulated; its log budget is accumulator.hpp, formulas (2) and
/// (3).
struct Accumulator {
  enum class Model { any_order, tree, blocked, mma, max };
  Model model = Model::any_order;
  double u = 0;                   // any_order, tree, blocked
  bool products_rounded = false;  // any_order, tree: products "rounded" or "exact"
  std::int64_t leaf = 0;          // tree
  std::int64_t block = 0;         // blocked: terms summed from zero
  std::int64_t b = 0, neab = 0;   // mma: products a step, extra alignment bits
  std::vector<Accumulator> of;    // max: the alternatives; blocked: of[0] is `inner`
};

enum class ExpArgument { sub, sub_log2, fma_scaled };
enum class AlphaFrom { raw_max, scaled_max };
enum class BlockOrder { any, ascending, descending };
enum class Merge { none, unnormalized, lse_sequential, lse_once, lse_sigmoid };
enum class Tri { no, yes, any };
enum class RoundMode { rn, rz, faithful };
enum class Overflow { inf, saturate };
enum class ProbabilityFrom { recompute, stored, any };
enum class DFrom { out, p_dp, any };
enum class BackwardMode { end_to_end, isolated };

struct Contract {
  std::string name;
  std::string hash;  // 12 hex digits of the expanded object, before "spec" values are replaced
  struct Inputs {
    DType dtype;
    double load_u, load_u_v, load_u_do;
  } inputs;
  struct Softcap {
    int roundings;
    std::vector<double> store;
    double tanh_rel, tanh_abs;
  };
  struct Score {
    Accumulator acc;
    double eta;
    int scale_roundings;
    double scale_const_u;
    std::vector<double> store;
    double store_eta;
    Softcap softcap;
    int bias_roundings;
    std::vector<double> bias_store;
    int sink_roundings;
  } score;
  struct Softmax {
    double u;
    ExpArgument arg;
    AlphaFrom alpha_from;
    double exp_rel, exp_eta;
    bool exp_zero_exact;
    bool lazy;
    double lazy_log2;
    std::int64_t block;
    BlockOrder order;
  } softmax;
  struct P {
    double u, eta, scale;
    RoundMode round;
    Tri normalized;
    bool sum_from_cast;
  } p;
  struct Sum {
    Accumulator acc;
    double u, eta;
  };
  Sum l, pv;
  struct Partials {
    std::int64_t count;
    std::vector<Merge> merge;
    double o_u, run_u, eta, lse_u, sigmoid_rel;
    std::int64_t max_keys;
  } partials;
  struct Finish {
    int roundings;
    double u;
  } finish;
  struct Out {
    DType dtype;
    RoundMode round;
    Overflow overflow;
    bool ftz;
  } out;
  struct Lse {
    LseBase base;
    double u;
    int max_roundings;
    double log_rel, log_abs;
  } lse;
  struct BackwardRing {
    std::int64_t count, count_rows, count_keys;
    double acc_u, store_u;
  };
  struct Backward {
    BackwardMode mode;
    ProbabilityFrom p_from;
    DFrom D_from;
    Accumulator dp_acc;
    std::vector<double> dp_store;
    double dp_store_eta, dp_eta;
    Accumulator D_acc;
    double D_eta, ds_u, ds_eta;
    bool ds_from_cast;
    Accumulator grad_acc;
    double grad_eta;
    int grad_scale_roundings;
    std::vector<double> grad_store;
    BackwardRing ring;
    double group_store_u;
  } backward;
  double prob_failure;
};

/// A contract from a name ("bf16-ring4+block64") or the JSON text of an object, with the "spec"
/// values taken from `spec` (lse base, ranks). Throws BadInput for unknown fields, names, variants,
/// disagreements.
Contract read_contract(const std::string& name_or_json, const Spec& spec);
/// Canonical JSON (sorted keys, no spaces) of the expanded object, "spec" not replaced.
std::string expanded_json(const std::string& name_or_json);
/// First 12 hex digits of SHA-256 of expanded_json.
std::string contract_hash(const std::string& name_or_json);
/// Names of the presets, in the order of docs/contract.md.
std::vector<std::string> preset_names();

}  // namespace ringproof::oracle
