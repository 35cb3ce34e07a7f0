// The choices a contract leaves to its kernels: which accumulator of a list, which merge, which
// order
// of blocks, how the keys lie on the ranks. One plan is one kernel; the adversary draws many.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/adversary/row.hpp"

namespace ringproof::adversary {

struct Plan {
  oracle::Accumulator score, l, pv;  // never `max`
  bool normalized = false;
  oracle::Merge merge = oracle::Merge::none;
  bool carried = false;                  // unnormalized: the state travels instead of being merged
  std::vector<int> partial = {};         // [n] partial result of key j, numbered in merge order
  std::vector<std::int64_t> place = {};  // [n] place of key j among the rows of its partial
  std::vector<std::int64_t> partial_size = {};  // [R] rows of a partial, invisible ones too
  std::int64_t block = 1;                       // keys of one maximum update
  enum class Order { ascending, descending, shuffled } order = Order::ascending;
  std::uint64_t shuffle_seed = 0;
  int sink_partial = 0;          // the partial that counts the sink
  bool sink_first = true;        // the sink's own block comes before or after the keys
  bool sink_scaled = false;      // the sink is divided by the scale and folded into raw units
  bool lse_exact_scale = false;  // LSE from m with another constant than the exponents'
};

Plan draw_plan(const oracle::Contract&, const Row&, std::mt19937_64&);

}  // namespace ringproof::adversary
