// Mistakes of the backward pass beside a right forward pass: which pairs count, what stands in for
// dP, D and the softcap's derivative, which rows of K, V and Q are read, and what is stored where.
// Written as small changes of a GradientRule; the lists are classes_gradient.cpp and, of dbias and
// dsinks, classes_addition.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oracle/diagnose/gradient_pairs.hpp"
#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// A pair of a query and a key; of dsinks the query alone.
struct PairPlace {
  std::int64_t b = 0, h = 0, i = 0, j = 0;
};

/// dS_ij = p_ij (dP_ij - D_i + dL_i) f_ij, dq_i = sigma sum_j dS_ij k_j, dk_j = sigma sum_i dS_ij
/// q_i, dv_j = sum_i p_ij dO_i, dbias_ij = dS_ij / f_ij, dsink = -sum_i p_sink,i (D_i - dL_i), with
/// a handle for every part. i, j are places; h a query head.
struct GradientRule {
  using Pair = std::function<double(std::int64_t h, std::int64_t i, std::int64_t j)>;
  Pair counts_q, counts_k, counts_v;  // weight of the pair in each gradient; empty: 1
  double factor_q = 1, factor_k = 1, factor_v = 1;
  double copies = 1;  // every gradient is added up so many times, where a factor says so as well
  /// How far the factors of a kernel may be from these, relative to them.
  double spread_q = 0, spread_k = 0, spread_v = 0;
  bool without_D = false, without_dlse = false, without_derivative = false;
  bool ones_for_dout = false, ones_for_dout_in_D = false;
  bool negative_D = false, negative_dlse = false;
  double p_exponent = 1;  // probabilities are raised to it: an exponential of another base
  /// Rows of V in dP and of K in dq that the pair reads; empty: j.
  std::function<std::int64_t(std::int64_t i, std::int64_t j)> v_row, k_row;
  /// Key whose dk or dv is stored at j; empty: j. Negative: zeros.
  std::function<std::int64_t(std::int64_t j)> dk_from, dv_from;
  bool exchanged = false;             // dk and dv in each other's place
  double dv_in_dk = 0, dk_in_dv = 0;  // multiples of the other one that are added
  // dbias and dsinks: weights of what is added up, and the place whose sum it is added to instead.
  double factor_bias = 1, factor_sinks = 1;
  std::function<double(const PairPlace&)> counts_bias, counts_sinks;  // empty: 1
  std::function<PairPlace(const PairPlace&)> bias_place, sink_place;  // empty: its own
  std::int64_t pairs_of_place = 1;  // that bias_place sends to one place, of a bias of full size
  bool derivative_in_bias = false, without_p_sink = false;
};

struct GradientMutant {
  std::string id, words, also;
  bool dq = false, dk = false, dv = false, dbias = false, dsinks = false;  // which are wrong
  bool estimated = false;  // the contract says nothing of a kernel that could make it
  GradientRule rule;
};

std::vector<GradientMutant> gradient_classes(const Subject&);
/// Those that change dbias or dsinks, alone or beside others.
void add_addition_classes(const Subject&, std::vector<GradientMutant>&);

/// The gradients of a KV head under a rule, and how far a kernel may be from them that makes this
/// mistake and conforms to the contract otherwise: (29)-(32) of docs/contract.md with the numbers
/// of the rule. Infinity where nothing is known.
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
