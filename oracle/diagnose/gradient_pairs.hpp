// The backward pass of one KV head pair by pair: everything from which gradients, right or wrong,
// are put together. Numbers are binary64; the bounds of the right gradients come from the contract,
// and those of wrong ones are scaled from them by the sizes of the sums (an estimate, not a
// theorem: docs/explain.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

/// One query head of the group.
struct HeadPairs {
  std::int64_t h = 0;
  std::vector<double> p{}, factor{};  // [Nq, Nk]; factor: derivative of the softcap, 1 without one
  std::vector<double> q{}, dout{}, out{};  // [Nq, D], [Nq, Dv], [Nq, Dv]
  std::vector<double> dlse{}, D{};         // [Nq]
  std::vector<double> budget_q{};  // [Nq] relative error that the contract allows dq's terms
  std::vector<double> p_sink{}, budget_sink{};  // [Nq] the same of this row's addend of dsinks
  std::vector<double> budget_bias{};            // [Nq, Nk] of dbias; empty without a bias
};

struct GradientPairs {
  std::int64_t b = 0, kv_head = 0, queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  double scale = 1;
  std::vector<HeadPairs> heads{};
  std::vector<double> k{}, v{};                // [Nk, D], [Nk, Dv]
  std::vector<double> budget_k{}, budget_v{};  // [Nk]
  std::string not_evaluated{};                 // why there are no pairs, or empty
};

/// Pairs beyond this number are not held in memory.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

GradientPairs gradient_pairs(const Case&, const Contract&, std::int64_t b, std::int64_t kv_head);

}  // namespace ringproof::oracle
