// Mistakes of the backward pass beside a right forward pass: which pairs count, what stands in for
// dP, D and the softcap's derivative, which rows of K, V and Q are read, and what is stored where.
// Written as small changes of a GradientRule; the list is classes_gradient.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oracle/diagnose/gradient_pairs.hpp"
#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// dS_ij = p_ij (dP_ij - D_i + dL_i) f_ij, dq_i = sigma sum_j dS_ij k_j, dk_j = sigma sum_i dS_ij
/// q_i, dv_j = sum_i p_ij dO_i, with a handle for every part. i, j are places; h a query head.
struct GradientRule {
  using Pair = std::function<double(std::int64_t h, std::int64_t i, std::int64_t j)>;
  Pair counts_q, counts_k, counts_v;  // weight of the pair in each gradient; empty: 1
  double factor_q = 1, factor_k = 1, factor_v = 1;
  bool without_D = false, without_dlse = false, without_derivative = false, without_p = false;
  bool ones_for_dout = false, ones_for_dout_in_D = false;
  bool negative_D = false;
  double p_exponent = 1;  // probabilities are raised to it: an exponential of another base
  /// Rows of V in dP and of K in dq that the pair reads; empty: j.
  std::function<std::int64_t(std::int64_t i, std::int64_t j)> v_row, k_row;
  /// Key whose dk or dv is stored at j; empty: j. Negative: zeros.
  std::function<std::int64_t(std::int64_t j)> dk_from, dv_from;
  bool exchanged = false;             // dk and dv in each other's place
  double dv_in_dk = 0, dk_in_dv = 0;  // multiples of the other one that are added
};

struct GradientMutant {
  std::string id, words, also;
  bool dq = false, dk = false, dv = false;  // the gradients that are wrong
  GradientRule rule;
};

std::vector<GradientMutant> gradient_classes(const Subject&);

/// The gradients of a KV head under a rule, and what they may be off.
struct WrongGradients {
  std::vector<double> dq, dk, dv;  // [heads, Nq, D], [Nk, D], [Nk, Dv]
  std::vector<double> bound_q, bound_k, bound_v;
};
/// Pairs that are looked at: those of one row, of a few keys, or (neither given) all. Elements of
/// other rows and keys come out as whatever those pairs add to them.
struct PairWindow {
  std::optional<std::pair<std::int64_t, std::int64_t>> row{};  // query head, query
  std::vector<std::int64_t> keys{};

  bool whole() const { return !row && keys.empty(); }
};
WrongGradients wrong_gradients(const GradientPairs&, const GradientMutant&,
                               const PairWindow& window = {});
/// The pairs behind dk and dv as they are stored at key j under the mutant.
PairWindow window_of_key(const GradientMutant&, std::int64_t j);

}  // namespace ringproof::oracle
